/** What changes, as it changes: tabs follow topics through one shared worker (contract 15.20). */
import { effect, signal } from '@preact/signals'
import { me } from './api.ts'
import { trustedAddress } from './trusted-address.ts'

interface Follower {
  readonly take: (data: unknown) => void
  readonly missed: () => void
}

/** The bus answers; undefined: not known yet. */
export const isLive = signal<boolean | undefined>(undefined)

const followers = new Map<string, Set<Follower>>()
let port: MessagePort | Worker | undefined

const LIFE_SIGN_MS = 5_000
/** Put in by the build, which names it by its content. */
declare const FEED_WORKER: string

/** Calls back with everything of a topic until what it returns is called. `missed`: something may have been said that did not come. */
export function followTopic(topic: string, take: (data: unknown) => void, missed = (): void => {}): () => void {
  const follower = { take, missed }
  const known = followers.get(topic) ?? new Set()
  followers.set(topic, known.add(follower))
  say()
  return () => {
    known.delete(follower)
    if (known.size === 0) followers.delete(topic)
    say()
  }
}

function say(): void {
  if (!me.value) return
  port ??= open()
  port.postMessage({ topics: [...followers.keys()] })
}

function open(): MessagePort | Worker {
  const url = trustedAddress(FEED_WORKER)
  const opened = typeof SharedWorker === 'undefined' ? new Worker(url) : new SharedWorker(url).port
  opened.onmessage = ({ data }: MessageEvent<{ isUp?: boolean; missed?: string[]; topic?: string; data?: string }>) => {
    if (data.isUp !== undefined) isLive.value = data.isUp
    for (const topic of data.missed ?? []) for (const { missed } of followers.get(topic) ?? []) missed()
    if (data.topic === undefined) return
    const value = JSON.parse(data.data!)
    for (const { take } of followers.get(data.topic) ?? []) take(value)
  }
  addEventListener('pagehide', () => opened.postMessage({ leave: true }))
  setInterval(() => opened.postMessage({}), LIFE_SIGN_MS)
  return opened
}

// Whoever logs in anew follows what it followed.
effect(() => {
  if (me.value) say()
})
