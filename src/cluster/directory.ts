/**
 * Where sessions live, as all nodes can look it up: a bucket of NATS that maps pool and session to a node (contract 14.6).
 *
 * An entry is a pointer, not a lock: who it points to judges. Nothing waits for a write; a read waits for a second. Whoever
 * has no JetStream has no directory, and sessions are found as newcomers are.
 */
import { createHash } from 'node:crypto'
import { jetstream } from '@nats-io/jetstream'
import { type KV, Kvm } from '@nats-io/kv'
import type { NatsConnection } from '@nats-io/transport-node'
import { CLUSTER } from './limits.ts'
import { isNodeName } from './names.ts'

export type Found = { readonly node: string } | 'nowhere' | 'unavailable'

const DAY_MS = 86_400_000
const KEPT_MS = 30 * DAY_MS
const MAX_BYTES = 64 * 1024 * 1024
/** As many copies as there are servers, up to these. */
const MOST_REPLICAS = 3
const RETRY_MS = 5_000
/** Writes that are under way, or wait for the bucket; beyond, pointers are not written: they are only pointers. */
const MAX_WRITES = 1_024

export interface DirectoryOptions {
  readonly cluster: string
  readonly node: string
  readonly jsDomain?: string
}

export interface DirectoryListener {
  /** It can be used from now on. */
  opened(): void
  /** A sentence for people, told once. */
  missing(sentence: string): void
}

export class Directory {
  readonly #options: DirectoryOptions
  #connection: NatsConnection | undefined
  #bucket: KV | undefined
  #openedMs = Number.NEGATIVE_INFINITY
  #isClosed = false
  #retry: NodeJS.Timeout | undefined
  #writes = 0
  /** Sessions whose pointers could not be written yet. */
  readonly #unwritten = new Map<string, { readonly pool: string; readonly session: string }>()
  #rewrite: NodeJS.Timeout | undefined

  constructor(options: DirectoryOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#bucket !== undefined
  }

  /** Opens the bucket as soon as that is possible. */
  async open(connection: NatsConnection, listener: DirectoryListener): Promise<void> {
    let wasTold = false
    while (!this.#isClosed && this.#bucket === undefined) {
      try {
        await this.openOnce(connection)
        listener.opened()
      } catch (error) {
        if (!wasTold) listener.missing(error instanceof Error ? error.message : String(error))
        wasTold = true
        await new Promise<void>((resolve) => {
          this.#retry = setTimeout(resolve, RETRY_MS).unref()
        })
      }
    }
  }

  /** One attempt; fails with an error of the library. */
  async openOnce(connection: NatsConnection): Promise<void> {
    this.#connection = connection
    this.#openedMs = performance.now()
    const bucket = await openBucket(connection, this.#options)
    await expectOwnKeysOnly(bucket, this.#options)
    this.#bucket = bucket
    this.#writeAgain()
  }

  /** Something has failed: the bucket may have gone, with its server's disk or by somebody's hand. */
  #openAgain(): void {
    if (this.#isClosed || performance.now() - this.#openedMs < RETRY_MS) return
    // Whoever fails next tries again.
    this.openOnce(this.#connection!).catch(() => {})
  }

  /** This node has the session; nobody waits for it. */
  note(pool: string, session: string): void {
    if (this.#bucket === undefined || this.#writes >= MAX_WRITES) return this.#writeLater(pool, session)
    this.#writes++
    const written = (): void => void this.#writes--
    this.#bucket.put(keyOf(pool, session), this.#options.node).then(written, () => {
      written()
      this.#openAgain()
      this.#writeLater(pool, session)
    })
  }

  #writeLater(pool: string, session: string): void {
    if (this.#isClosed || this.#unwritten.size >= MAX_WRITES) return
    this.#unwritten.set(keyOf(pool, session), { pool, session })
    this.#rewrite ??= setTimeout(() => this.#writeAgain(), RETRY_MS).unref()
  }

  #writeAgain(): void {
    clearTimeout(this.#rewrite)
    this.#rewrite = undefined
    const unwritten = [...this.#unwritten.values()]
    this.#unwritten.clear()
    for (const { pool, session } of unwritten) this.note(pool, session)
  }

  async find(pool: string, session: string): Promise<Found> {
    if (this.#bucket === undefined) return 'nowhere'
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'unavailable'>((resolve) => {
      timer = setTimeout(() => resolve('unavailable'), CLUSTER.directoryWaitMs)
    })
    try {
      const entry = await Promise.race([this.#bucket.get(keyOf(pool, session)), late])
      if (entry === 'unavailable') return entry
      const node = entry === null || entry.operation !== 'PUT' ? '' : entry.string()
      return isNodeName(node) ? { node } : 'nowhere'
    } catch {
      this.#openAgain()
      return 'unavailable'
    } finally {
      clearTimeout(timer)
    }
  }

  /** All pointers to the node go; returns how many there were. */
  async forget(node: string): Promise<number> {
    const bucket = this.#bucket!
    let count = 0
    const keys: string[] = []
    for await (const key of await bucket.keys()) keys.push(key)
    for (const key of keys) {
      const entry = await bucket.get(key)
      if (entry === null || entry.string() !== node) continue
      await bucket.purge(key)
      count++
    }
    return count
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
    clearTimeout(this.#rewrite)
  }
}

async function openBucket(connection: NatsConnection, options: DirectoryOptions): Promise<KV> {
  const { cluster, jsDomain } = options
  const kvm = new Kvm(
    jetstream(connection, { timeout: CLUSTER.directoryWaitMs * 2, ...(jsDomain && { domain: jsDomain }) }),
  )
  const name = `bus_${cluster}`
  const servers = (connection.info?.connect_urls?.length ?? 1) >= MOST_REPLICAS ? MOST_REPLICAS : 1
  const settings = { history: 1, ttl: KEPT_MS, max_bytes: MAX_BYTES }
  try {
    return await kvm.create(name, { ...settings, replicas: servers })
  } catch (error) {
    // Somebody has made it before, with other settings; or there are fewer servers than it seemed.
    const bucket = await kvm.open(name).catch(() => undefined)
    if (bucket !== undefined && (await isThere(bucket))) return bucket
    if (servers === 1) throw error
    return kvm.create(name, { ...settings, replicas: 1 })
  }
}

/**
 * Whoever makes the bucket says what it takes in, and all may read it: nobody is to have it take in what nodes say to each
 * other (contract 14.9).
 */
async function expectOwnKeysOnly(bucket: KV, { cluster }: DirectoryOptions): Promise<void> {
  const { subjects = [] } = (await bucket.status()).streamInfo.config
  if (subjects.every((subject) => subject === `$KV.bus_${cluster}.>`)) return
  throw new Error(`the bucket bus_${cluster} was made to take in more than where sessions live: ${subjects.join(', ')}`)
}

async function isThere(bucket: KV): Promise<boolean> {
  return bucket.status().then(
    () => true,
    () => false,
  )
}

function keyOf(pool: string, session: string): string {
  return createHash('sha256').update(`${pool}\0${session}`).digest('hex').slice(0, 32)
}
