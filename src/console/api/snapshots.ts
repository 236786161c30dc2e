/**
 * A topic that is a picture of what is now: taken at most four times a second, once for all who see the same, and sent when it
 * has changed (contract 15.19).
 */
import type { ApiCall } from './api-call.ts'
import type { Topic } from './feed.ts'

const INTERVAL_MS = 250

interface Follower {
  readonly call: ApiCall
  readonly view: string
  readonly send: (data: unknown) => void
  last: string
}

export class SnapshotTopic implements Topic {
  readonly #take: (call: ApiCall) => unknown
  readonly #followers = new Set<Follower>()
  #timer: NodeJS.Timeout | undefined

  constructor(take: (call: ApiCall) => unknown) {
    this.#take = take
  }

  follow(call: ApiCall, send: (data: unknown) => void): () => void {
    const { rights, principal } = call.admitted.identity
    const follower = { call, view: JSON.stringify([principal, rights.role, rights.pools]), send, last: '' }
    this.#followers.add(follower)
    this.#tell(follower, new Map())
    this.#timer ??= setInterval(() => this.#tick(), INTERVAL_MS)
    return () => this.#leave(follower)
  }

  #tick(): void {
    const taken = new Map<string, { data: unknown; text: string }>()
    for (const follower of this.#followers) this.#tell(follower, taken)
  }

  #tell(follower: Follower, taken: Map<string, { data: unknown; text: string }>): void {
    let picture = taken.get(follower.view)
    if (picture === undefined) {
      const data = this.#take(follower.call)
      picture = { data, text: JSON.stringify(data, withoutTime) }
      taken.set(follower.view, picture)
    }
    if (picture.text === follower.last) return
    follower.last = picture.text
    follower.send(picture.data)
  }

  #leave(follower: Follower): void {
    this.#followers.delete(follower)
    if (this.#followers.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** That time has passed is no news. */
function withoutTime(key: string, value: unknown): unknown {
  return key === 'at' || key === 'uptime_sec' ? undefined : value
}
