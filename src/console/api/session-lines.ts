/**
 * What was said in a kept session, number by number, and what is said from now on (contract 15.8, 15.18).
 *
 * Whoever reads is not told of in the session: to look changes nothing. A line that is not kept any more is a `gap`.
 */
import { type ApiCall, ApiError, badParameter, countOf, notFound } from './api-call.ts'
import type { BusClient, BusMessage } from './bus-client.ts'
import type { Topic } from './feed.ts'
import type { ConsolePort, SessionRow } from './port.ts'

const EVENT = 'bus::sessions.event'
const MAX_PAGE_BYTES = 1024 * 1024
const MAX_READ_MS = 10_000
const PREFIX = 'session:'
const SLOW = new ApiError(503, 'slow_journal', 'What was said could not be read in time: ask again.')

interface Attached {
  readonly seq: number
  readonly first_seq: number
  readonly turn: string
}

export interface SessionLine {
  readonly seq: number
  readonly method: string | undefined
  readonly params: unknown
}

/** Gives every line its number: events say theirs, all others count on. */
class Numbering {
  #seq: number

  constructor(first: number) {
    this.#seq = first - 1
  }

  take({ method, params }: BusMessage): SessionLine {
    this.#seq = method === EVENT ? Number(params?.['seq']) : this.#seq + 1
    return { seq: this.#seq, method, params }
  }
}

/** Of the session that the path names. */
export function rowOf(port: ConsolePort, { admitted, parts, query }: ApiCall, id = parts[0] ?? ''): SessionRow {
  const row = port.sessions.one(admitted.identity, id, query.get('pool') ?? undefined)
  if (row === undefined) throw notFound('session of this name')
  return row
}

/** A page of lines, from a number on. */
export async function readLines(port: ConsolePort, call: ApiCall, limit: number): Promise<unknown> {
  const row = rowOf(port, call)
  const from = numberOf(call.query.get('cursor') ?? call.query.get('from'))
  if (from > row.seq + 1) throw badParameter(`from is at most ${row.seq + 1}.`)
  const client = port.openClient(call.admitted, call.web.connection.peer, true)
  try {
    const items = from > row.seq ? [] : await collect(client, row, from, limit)
    const last = items.at(-1)?.seq ?? from - 1
    const { seq, first_seq } = row
    return { items, seq, first_seq, ...(last < seq ? { next_cursor: String(last + 1) } : {}) }
  } finally {
    client.leave()
  }
}

function collect(client: BusClient, { session, pool, seq }: SessionRow, from: number, limit: number) {
  const numbering = new Numbering(from)
  const items: SessionLine[] = []
  let bytes = 0
  return new Promise<SessionLine[]>((resolve, reject) => {
    const finish = (): void => {
      client.onMessage = () => {}
      resolve(items)
    }
    client.onMessage = (message) => {
      const line = numbering.take(message)
      if (line.seq > seq) return finish()
      items.push(line)
      bytes += JSON.stringify(line.params).length
      if (items.length >= limit || line.seq >= seq || bytes > MAX_PAGE_BYTES) finish()
    }
    client
      .ask<Attached>('bus::sessions.attach', { session, pool, role: 'observe', from })
      .then(({ seq: last }) => last < from && finish(), reject)
    setTimeout(() => reject(SLOW), MAX_READ_MS).unref()
  })
}

function numberOf(text: string | null): number {
  if (text === null) return 1
  const from = countOf(text)
  if (from === undefined || from === 0) throw badParameter('from is the number of a line, from 1 on.')
  return from
}

/** The name of the topic of a session: its id as it may stand in an address. */
export function topicOf(session: string): string {
  return PREFIX + encodeURIComponent(session)
}

/** The session that a topic is about, if it is about one. */
export function sessionOf(topic: string): string | undefined {
  if (!topic.startsWith(PREFIX)) return undefined
  try {
    const session = decodeURIComponent(topic.slice(PREFIX.length))
    return topicOf(session) === topic ? session : undefined
  } catch {
    return undefined
  }
}

/** Somebody looks at the session; what it returns says that it does no more. */
export type Followed = (call: ApiCall, row: SessionRow) => () => void

export class SessionTopic implements Topic {
  readonly #port: ConsolePort
  readonly #session: string
  readonly #followed: Followed

  constructor(port: ConsolePort, session: string, followed: Followed) {
    this.#port = port
    this.#session = session
    this.#followed = followed
  }

  /** First where the session is, then its lines: those after the position that was given, else those from now on. */
  follow(call: ApiCall, send: (data: unknown, position?: string) => void, after?: string): () => void {
    const row = this.#port.sessions.one(call.admitted.identity, this.#session)
    if (row === undefined) {
      send({ error: { reason: 'unknown_session', message: 'There is no session of this name.' } })
      return () => {}
    }
    const { session, pool } = row
    const client = this.#port.openClient(call.admitted, call.web.connection.peer, true)
    const from = after !== undefined && /^\d{1,15}$/.test(after) ? Math.min(Number(after), row.seq) + 1 : row.seq + 1
    const numbering = new Numbering(from)
    client.onMessage = (message) => {
      const line = numbering.take(message)
      send(line, String(line.seq))
    }
    send({ seq: from - 1, first_seq: row.first_seq, turn: row.turn, state: row.state })
    client.ask('bus::sessions.attach', { session, pool, role: 'observe', from }).catch(({ reason, message }) => {
      send({ error: { reason, message } })
    })
    const unfollow = this.#followed(call, row)
    return () => {
      client.leave()
      unfollow()
    }
  }
}
