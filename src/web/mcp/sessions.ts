/**
 * The sessions of one door: who has which, and when one is over (contract 10.7).
 *
 * A session is found by its id, its principal and its pool together; with one of them wrong it does not exist. Ids are 128 random
 * bits and are known here by their digests alone.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { PoolId, Principal } from '../../kernel/vocabulary.ts'
import type { Message } from '../body.ts'
import type { WebPort } from '../port.ts'
import type { WebRequest } from '../web-request.ts'
import { Handshake, Restoration, type SessionFate } from './handshake.ts'
import type { Session } from './session.ts'
import type { Remembered, SessionsFile } from './sessions-file.ts'

const LOOK_MS = 500
const ID_BYTES = 16

interface Entry {
  readonly session: Session
  readonly principal: Principal
  readonly pool: PoolId | undefined
}

export interface SessionsOptions {
  /** A session without a stream and without anything in flight ends after so long. */
  readonly idleMs: number
  /** Where sessions are remembered over a restart of the bus. */
  readonly file?: SessionsFile | undefined
}

export class Sessions {
  readonly #port: WebPort
  readonly #idleMs: number
  readonly #file: SessionsFile | undefined
  readonly #entries = new Map<string, Entry>()
  /** Those that the bus had before it was started again, and that nobody has used since. */
  readonly #dormant = new Map<string, Remembered>()
  readonly #startedAtMs = performance.now()
  readonly #timer: NodeJS.Timeout

  constructor(port: WebPort, { idleMs, file }: SessionsOptions) {
    this.#port = port
    this.#idleMs = idleMs
    this.#file = file
    for (const remembered of file?.remembered ?? []) this.#dormant.set(remembered.key, remembered)
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  get count(): number {
    return this.#entries.size
  }

  get streamCount(): number {
    let count = 0
    for (const { session } of this.#entries.values()) count += session.streamCount
    return count
  }

  /** A client introduces itself: if that succeeds it has a session. */
  begin(web: WebRequest, { line, envelope }: Message): void {
    const sessionId = randomBytes(ID_BYTES).toString('hex')
    const key = digestOf(sessionId)
    const owner = this.#ownerOf(web)
    const fate: SessionFate = {
      begun: (session) => {
        this.#entries.set(key, { session, ...owner })
        this.#file?.add({ key, ...owner, revision: session.revision, initialize: line.utf8Slice() })
      },
      ended: (by) => this.#forget(key, by),
    }
    new Handshake(web, this.#port, { sessionId, requestId: envelope.idSpelling() }, fate).begin(line)
  }

  /** The session of this id, if its sender may use it. */
  find(web: WebRequest, id: string | undefined): Session | undefined {
    if (id === undefined) return undefined
    const key = digestOf(id)
    const entry = this.#entries.get(key) ?? this.#dormant.get(key)
    const { principal, pool } = this.#ownerOf(web)
    if (entry === undefined || entry.principal !== principal || entry.pool !== pool) return undefined
    if ('initialize' in entry) return this.#restore(web, entry)
    entry.session.renew(web)
    return entry.session
  }

  #restore(web: WebRequest, { key, principal, pool, revision, initialize }: Remembered): Session {
    this.#dormant.delete(key)
    const restoration = new Restoration(this.#port, revision, {
      begun: () => {},
      ended: (by) => this.#forget(key, by),
    })
    const { session } = restoration
    this.#entries.set(key, { session, principal, pool })
    restoration.begin(web, Buffer.from(initialize))
    return session
  }

  #ownerOf({ pool, admitted: { identity } }: WebRequest): Omit<Entry, 'session'> {
    return { principal: identity.principal, pool: pool ?? this.#port.poolOf(identity) }
  }

  /** What the end of the bus ends is there again after its start. */
  #forget(key: string, by: 'client' | 'bus'): void {
    this.#entries.delete(key)
    if (by === 'client' || !this.#port.isShuttingDown) this.#file?.remove(key)
  }

  #look(): void {
    for (const { session, pool } of [...this.#entries.values()])
      if (session.isIdleFor(this.#idleMs) || (pool !== undefined && session.isLostWith(pool))) session.end()
    if (this.#dormant.size === 0 || performance.now() - this.#startedAtMs < this.#idleMs) return
    for (const key of this.#dormant.keys()) this.#file?.remove(key)
    this.#dormant.clear()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#file?.close()
  }
}

function digestOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
