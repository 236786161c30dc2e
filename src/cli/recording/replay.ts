/**
 * Runs a kernel over a recording and compares every decision; the first one that differs ends the replay.
 *
 * It needs no socket, process or clock: what came is in the recording, what leaves is compared and thrown away.
 */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { DIALECTS } from '../../dialects/index.ts'
import { Bus } from '../../kernel/bus.ts'
import type { Action, BusEvent, Write } from '../../kernel/events.ts'
import { UserMistake } from '../user-mistake.ts'
import {
  decisionOf,
  FORMAT,
  type Header,
  hashOutput,
  type Recorded,
  type Row,
  seededChance,
  senderOf,
} from './format.ts'

export interface ReplayListener {
  /** An event has been applied; `number` counts from 1. */
  applied(number: number, atMs: number, event: BusEvent, decisions: readonly string[]): void
  /** These bytes leave for the peer. */
  written(number: number, write: Write): void
}

export interface Verdict {
  readonly events: number
  readonly decisions: number
  readonly linesOut: number
  readonly durationMs: number
}

/** This kernel decides otherwise than the one that was recorded. */
export class Divergence extends Error {
  override readonly name = 'Divergence'
  readonly exitCode = 1
}

export async function replay(file: string, listener?: ReplayListener): Promise<Verdict> {
  const sent = await readSent(file)
  let run: Run | undefined
  for await (const row of rowsOf(file)) {
    if (run === undefined) run = new Run(headerOf(row, file), sent, listener)
    else run.take(row as Row)
  }
  if (run === undefined) throw new UserMistake(`${file} is empty: it is no recording of stdio-bus serve --record`)
  return run.verdict
}

function headerOf(row: unknown, file: string): Header {
  const header = row as Partial<Header>
  if (header.recording === FORMAT) return header as Header
  throw new UserMistake(`${file} is no recording that this version can read: it must be written by serve --record`)
}

async function* rowsOf(file: string): AsyncGenerator<unknown> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
  let pending: string | undefined
  let number = 0
  for await (const line of lines) {
    if (pending !== undefined) yield parseRow(pending, file, number)
    pending = line
    number++
  }
  // The last line of a bus that was killed may be cut off.
  const last = pending === undefined ? undefined : tryParse(pending)
  if (last !== undefined) yield last
}

function parseRow(line: string, file: string, number: number): unknown {
  const row = tryParse(line)
  if (row === undefined) throw new UserMistake(`${file}:${number} is not JSON: the recording is damaged`)
  return row
}

function tryParse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Without payloads, what peers sent stands behind the events that count it. */
async function readSent(file: string): Promise<Map<string, Sent>> {
  const sent = new Map<string, Sent>()
  for await (const row of rowsOf(file)) {
    if (!Array.isArray(row) || row[0] !== 'sent') continue
    const [, sender, base64] = row as unknown as Extract<Row, readonly ['sent', ...unknown[]]>
    if (!sent.has(sender)) sent.set(sender, new Sent())
    sent.get(sender)!.add(Buffer.from(base64, 'base64'))
  }
  return sent
}

class Sent {
  readonly #parts: Buffer[] = []
  #from = 0

  add(part: Buffer): void {
    this.#parts.push(part)
  }

  take(count: number): Buffer {
    const bytes = Buffer.allocUnsafeSlow(count)
    let filled = 0
    while (filled < count) {
      const part = this.#parts[0]
      // The recording ended in the middle of a line: what is missing was never decided upon.
      if (part === undefined) return Buffer.from(bytes.fill(0x7a, filled))
      const copied = part.copy(bytes, filled, this.#from, this.#from + count - filled)
      filled += copied
      this.#from += copied
      if (this.#from < part.length) continue
      this.#parts.shift()
      this.#from = 0
    }
    return bytes
  }
}

class Run {
  readonly #bus: Bus
  readonly #hasPayloads: boolean
  readonly #sent: ReadonlyMap<string, Sent>
  readonly #listener: ReplayListener | undefined
  /** What is to be written, until it is reported. */
  readonly #writes = new Map<string, Write>()
  #events = 0
  #decisions = 0
  #linesOut = 0
  #firstMs: number | undefined
  #lastMs = 0

  constructor(header: Header, sent: ReadonlyMap<string, Sent>, listener: ReplayListener | undefined) {
    this.#bus = new Bus(header.spec, DIALECTS, seededChance(header.seed))
    this.#hasPayloads = header.hasPayloads
    this.#sent = sent
    this.#listener = listener
  }

  get verdict(): Verdict {
    const durationMs = this.#lastMs - (this.#firstMs ?? this.#lastMs)
    return { events: this.#events, decisions: this.#decisions, linesOut: this.#linesOut, durationMs }
  }

  take(row: Row): void {
    if (row[0] === 'start') return this.#compare(row[2], this.#bus.start(row[1]), 'the start')
    if (row[0] === 'event') return this.#apply(row[1], row[2], row[3])
    if (row[0] === 'writes') return this.#takeWrites()
    if (row[0] === 'write') return this.#write(`${row[1]} ${row[2]}`, row[3], row[4])
    if (row[0] === 'wrote') this.#wrote(row[1], `${row[2]} ${row[3]}`, row[4], row[5])
  }

  #apply(atMs: number, told: Record<string, unknown>, decisions: readonly string[]): void {
    this.#events++
    this.#firstMs ??= atMs
    this.#lastMs = atMs
    const event = this.#restore(told)
    const actions = this.#bus.apply(event, atMs)
    this.#listener?.applied(this.#events, atMs, event, decisions)
    this.#compare(decisions, actions, `event ${this.#events} (${event.type})`)
  }

  #restore(told: Record<string, unknown>): BusEvent {
    const { bytes } = told as { bytes?: Recorded }
    if (bytes === undefined) return told as BusEvent
    if ('base64' in bytes) return { ...told, bytes: own(Buffer.from(bytes.base64, 'base64')) } as unknown as BusEvent
    const sender = senderOf(told as BusEvent)!
    return { ...told, bytes: (this.#sent.get(sender) ?? new Sent()).take(bytes.count) } as unknown as BusEvent
  }

  #compare(recorded: readonly string[], actions: readonly Action[], at: string): void {
    const decided = actions.map((action) => decisionOf(action, this.#hasPayloads))
    this.#decisions += decided.length
    for (let i = 0; i < Math.max(recorded.length, decided.length); i++) {
      if (recorded[i] === decided[i]) continue
      throw new Divergence(
        `${at} is decided otherwise:\n  recorded: ${recorded[i] ?? 'nothing more'}\n  now:      ${decided[i] ?? 'nothing more'}`,
      )
    }
  }

  #takeWrites(): void {
    for (const write of this.#bus.takeWrites()) this.#writes.set(`${write.kind} ${write.id}`, write)
  }

  #write(name: string, lines: number, hash: string): void {
    const write = this.#writes.get(name)
    const at = `after event ${this.#events}`
    if (write === undefined) throw new Divergence(`${at} nothing is queued for ${name}; recorded were ${lines} lines`)
    this.#listener?.written(this.#events, write)
    const output = hashOutput(write.buffers, this.#hasPayloads)
    this.#linesOut += output.lines
    if (output.hash === hash) return
    throw new Divergence(`${at} ${name} gets something else: ${output.lines} lines, recorded were ${lines} others`)
  }

  #wrote(atMs: number, name: string, pendingBytes: number, decisions: readonly string[]): void {
    const write = this.#writes.get(name)!
    this.#writes.delete(name)
    const actions = this.#bus.wrote(write, pendingBytes, atMs)
    this.#compare(decisions, actions, `what is written to ${name} after event ${this.#events}`)
  }
}

/** A buffer of its own, as a read gives one: queues treat slices of a shared one otherwise. */
function own(bytes: Buffer): Buffer {
  const buffer = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(buffer)
  return buffer
}
