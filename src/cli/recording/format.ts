/**
 * A recording as lines of JSON: a header, then everything the kernel was told and what it decided, in order.
 *
 * Decisions are kept as short texts that people can read and programs can compare; bytes that left are kept as a hash. What
 * a peer has sent is kept whole, or, without payloads, as masked lines (see `masking.ts`).
 */
import { createHash } from 'node:crypto'
import type { Action, BusEvent } from '../../kernel/events.ts'
import type { BusSpec } from '../../kernel/vocabulary.ts'
import { Envelope } from '../../wire/envelope.ts'
import { FIELD, FIELD_NAMES, FIELD_TREE, type FieldNode } from '../../wire/fields.ts'

export const FORMAT = 2

export interface Header {
  readonly recording: typeof FORMAT
  readonly hasPayloads: boolean
  /** Of the source of chance that the kernel had. */
  readonly seed: number
  readonly spec: BusSpec
}

/** Where bytes are, in an event of the recording: as many of those its peer has sent, or these. */
export type Recorded = { readonly count: number } | { readonly base64: string }

export type Row =
  | readonly ['start', atMs: number, decisions: readonly string[]]
  | readonly ['event', atMs: number, event: Record<string, unknown>, decisions: readonly string[]]
  /** What a peer has sent, without its payload; it belongs to the counts of its events, also earlier ones. */
  | readonly ['sent', peer: string, base64: string]
  /** The kernel was asked for what to write; each write of it is written, then reported. */
  | readonly ['writes']
  | readonly ['write', kind: 'client' | 'worker', id: number, lines: number, hash: string]
  | readonly [
      'wrote',
      atMs: number,
      kind: 'client' | 'worker',
      id: number,
      pendingBytes: number,
      decisions: readonly string[],
    ]

/** Who has sent the bytes of an event; undefined: nobody did. */
export function senderOf(event: BusEvent): string | undefined {
  if (event.type === 'client-received') return `client ${event.client}`
  return event.type === 'worker-received' ? `worker ${event.worker}.${event.generation}` : undefined
}

type Described = Partial<Record<Action['do'], (action: never, hasPayloads: boolean) => string>>

/** What an action decides; the payload of a traced message or a call is not a decision. */
export function decisionOf(action: Action, hasPayloads: boolean): string {
  const describe = DECISIONS[action.do] as ((action: Action, hasPayloads: boolean) => string) | undefined
  if (describe !== undefined) return `${action.do} ${describe(action, hasPayloads)}`
  const { do: name, ...rest } = action
  return Object.keys(rest).length === 0 ? name : `${name} ${Object.values(rest).map(spell).join(' ')}`
}

const DECISIONS: Described = {
  log: ({ level, text }: Extract<Action, { do: 'log' }>) => `${level} ${text}`,
  call: ({ from, bytes }: Extract<Action, { do: 'call' }>, hasPayloads) =>
    `${spell(from)} ${bytes.length} bytes${hasPayloads ? ` ${hashOf([bytes])}` : ''}`,
  aggregate: ({ client, pool, bytes, row }: Extract<Action, { do: 'aggregate' }>, hasPayloads) =>
    `${client} ${pool} ${row} ${bytes.length} bytes${hasPayloads ? ` ${hashOf([bytes])}` : ''}`,
  said: ({ client, bytes }: Extract<Action, { do: 'said' }>, hasPayloads) =>
    `${client} ${bytes.length} bytes${hasPayloads ? ` ${hashOf([bytes])}` : ''}`,
  observed: () => '',
  // What was said is no decision, and not in a recording without payloads.
  journal: ({ what }: Extract<Action, { do: 'journal' }>) =>
    `${what.order}${'seq' in what ? ` ${what.seq} ${what.bytes.length} bytes` : ''}`,
  // No credential is in a recording (contract 9.15).
  judge: ({ client, token }: Extract<Action, { do: 'judge' }>) => `${client}${token === undefined ? '' : ' a token'}`,
  audit: ({ event, client, pool, method, outcome }: Extract<Action, { do: 'audit' }>) =>
    [event, client, pool, method, outcome].join(' '),
  'exchange-failed': ({ client, error }: Extract<Action, { do: 'exchange-failed' }>) => `${client} ${error.code}`,
}

function spell(value: unknown): string {
  return typeof value === 'object' ? Object.values(value as object).join('.') : String(value)
}

export function hashOf(parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex').slice(0, 16)
}

const envelope = new Envelope()

/** The bytes that leave for a peer, whole; or, of every line, the routing fields alone. */
export function hashOutput(buffers: readonly Buffer[], hasPayloads: boolean): { lines: number; hash: string } {
  const bytes = buffers.length === 1 ? buffers[0]! : Buffer.concat(buffers)
  const parts: Buffer[] = []
  let lines = 0
  for (const line of linesOf(bytes)) {
    lines++
    if (!hasPayloads) parts.push(Buffer.from(fieldsOf(line)))
  }
  return { lines, hash: hashOf(hasPayloads ? [bytes] : parts) }
}

export function* linesOf(bytes: Buffer): Generator<Buffer> {
  let start = 0
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
    yield bytes.subarray(start, end)
    start = end + 1
  }
}

/** The texts and numbers among the routing fields of a line, as they are spelled. */
function fieldsOf(line: Buffer): string {
  envelope.read(line, 0, line.length)
  let text = ''
  for (const name of FIELD_NAMES) {
    // What may hold fields is payload where it holds none.
    if (CONTAINERS.has(FIELD[name])) continue
    const type = envelope.typeOf(FIELD[name])
    if (type === 'string' || type === 'number') text += `${name}=${envelope.spelling(FIELD[name])}\n`
  }
  return `${text}\n`
}

/** A source of chance that a recording can repeat. */
export function seededChance(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

function containersIn({ slot, byLength, hasChildren }: FieldNode): number[] {
  const below = byLength.flatMap((nodes) => (nodes ?? []).flatMap(containersIn))
  return hasChildren ? [slot, ...below] : below
}

const CONTAINERS: ReadonlySet<number> = new Set(containersIn(FIELD_TREE))
