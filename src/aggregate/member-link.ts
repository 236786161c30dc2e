/**
 * One client of the aggregate at one member: a client of that pool, from its first call to it (contract 13.3).
 *
 * It is greeted in the client's own words, in the era of the member; what is sent before that waits. What the member says
 * is handed on as it comes. When greeting fails, whatever waits hears why, and the next call tries again.
 */
import { type Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { SpokenEra } from './eras.ts'
import type { AggregatePort, Delegate } from './port.ts'

/** What it asks of the client it speaks for. */
export interface LinkHost {
  readonly port: AggregatePort
  readonly client: number
  /** For reading what a member has said; it is filled anew for every line. */
  readonly reader: Envelope
  /** The parameters of the greeting, as JSON. */
  greeting(): string
  /** A line of the member, which `reader` has read. */
  fromMember(link: MemberLink, bytes: Buffer): void
  /** The member is not to be had: what waits for it gets this error. */
  linkFailed(link: MemberLink, error: string): void
}

type OnAnswer = (line: Envelope) => void

export class MemberLink {
  readonly pool: string
  readonly era: SpokenEra
  readonly #host: LinkHost
  readonly #delegate: Delegate
  /** Lines that wait for the greeting; undefined: it is over. */
  #held: Buffer[] | undefined
  /** Requests of the bus's own on behalf of the client. */
  readonly #own = new Map<string, OnAnswer>()
  #lastId = 0
  #isOpen = true
  /** The level that the member was told to log at. */
  #level: string | undefined

  constructor(host: LinkHost, pool: string, era: SpokenEra) {
    this.#host = host
    this.pool = pool
    this.era = era
    this.#delegate = host.port.open(pool, host.client, (bytes) => this.#receive(bytes))
    if (era === 'modern') return
    this.#held = []
    const id = this.#makeId((line) => this.#welcomed(line))
    this.#delegate.send(
      Buffer.from(`{"jsonrpc":"2.0","id":"${id}","method":"initialize","params":${host.greeting()}}\n`),
    )
  }

  get delegate(): number {
    return this.#delegate.id
  }

  /** The line is lent: what waits is copied. */
  send(line: Buffer): void {
    if (this.#held === undefined) this.#delegate.send(line)
    else this.#held.push(Buffer.from(line))
  }

  /** A request of the bus's own; `params` is JSON. Gives its id. */
  ask(method: string, params: string, onAnswer: OnAnswer = () => {}): string {
    const id = this.#makeId(onAnswer)
    this.send(Buffer.from(`{"jsonrpc":"2.0","id":"${id}","method":${JSON.stringify(method)},"params":${params}}\n`))
    return id
  }

  /** An id of the bus's own, which nobody can guess; its answer goes to `onAnswer`. */
  #makeId(onAnswer: OnAnswer): string {
    const id = `${this.#host.port.secret}-${++this.#lastId}`
    this.#own.set(id, onAnswer)
    return id
  }

  /** A line that is to be sent with an id of the bus's own. */
  lendId(onAnswer: OnAnswer): string {
    return this.#makeId(onAnswer)
  }

  /** A request of the bus's own is not wanted any more. */
  cancel(id: string): void {
    this.#own.delete(id)
    this.send(Buffer.from(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"${id}"}}\n`))
  }

  setLevel(level: string): void {
    if (this.era === 'modern' || this.#level === level) return
    this.#level = level
    this.ask('logging/setLevel', JSON.stringify({ level }))
  }

  leave(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#own.clear()
    this.#delegate.leave()
  }

  #receive(bytes: Buffer): void {
    if (!this.#isOpen) return
    const { reader } = this.#host
    const shape = reader.read(bytes, 0, bytes.length - 1)
    const key = shape === SHAPE.response ? reader.key(FIELD.id) : undefined
    const own = typeof key === 'string' ? this.#own.get(key) : undefined
    if (own === undefined) return this.#host.fromMember(this, bytes)
    this.#own.delete(key as string)
    own(reader)
  }

  #welcomed(line: Envelope): void {
    const held = this.#held ?? []
    this.#held = undefined
    if (!line.has(FIELD.result)) {
      const error = line.spelling(FIELD.error)
      this.leave()
      return this.#host.linkFailed(this, error)
    }
    this.#delegate.send(INITIALIZED)
    for (const each of held) this.#delegate.send(each)
  }
}

const INITIALIZED = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
