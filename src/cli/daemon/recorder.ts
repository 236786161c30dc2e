/**
 * Writes down everything the kernel is told and decides, so that a night in production can be replayed on a desk.
 *
 * The file is its owner's alone (mode 0600) and never written over. Without payloads it holds routing fields, lengths and
 * hashes. Recording never holds up the bus: when the disk is full or too slow, the recording ends with a warning.
 */
import { randomInt } from 'node:crypto'
import { createWriteStream, openSync, type WriteStream } from 'node:fs'
import { whyUnwritable } from '../../host/why-unwritable.ts'
import type { Action, BusEvent, Write } from '../../kernel/events.ts'
import type { BusSpec } from '../../kernel/vocabulary.ts'
import { decisionOf, FORMAT, type Header, hashOutput, type Row, seededChance, senderOf } from '../recording/format.ts'
import { maskBeginning, maskLine } from '../recording/masking.ts'
import { UserMistake } from '../user-mistake.ts'

export interface RecorderOptions {
  readonly file: string
  readonly hasPayloads: boolean
  readonly onTrouble: (message: string) => void
}

/** So much may wait for the disk. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024
/** An unfinished line above this is written in parts: no peer may be longer than the kernel lets it. */
const MAX_UNFINISHED_BYTES = 64 * 1024 * 1024
const NEWLINE = 10

export class Recorder {
  /** The kernel must draw from this. */
  readonly chance: () => number
  readonly #options: RecorderOptions
  readonly #stream: WriteStream
  /** What peers have begun to say, without payloads only. */
  readonly #unfinished = new Map<string, Buffer>()
  #isOver = false

  constructor(spec: BusSpec, options: RecorderOptions) {
    this.#options = options
    this.#stream = createWriteStream(options.file, { fd: openNew(options.file) })
    this.#stream.on('error', (error) => this.#giveUp(error.message))
    const seed = randomInt(2 ** 31)
    this.chance = seededChance(seed)
    const header: Header = { recording: FORMAT, hasPayloads: options.hasPayloads, seed, spec }
    this.#write(header)
  }

  /** `actions` are what `bus.start(nowMs)` returned. */
  started(nowMs: number, actions: readonly Action[]): void {
    this.#writeRow(['start', nowMs, this.#decisions(actions)])
  }

  /** `actions` are what `bus.apply(event, nowMs)` returned. */
  applied(event: BusEvent, nowMs: number, actions: readonly Action[]): void {
    if (this.#isOver) return
    const told = 'bytes' in event ? { ...event, bytes: this.#recordBytes(event) } : { ...event }
    this.#writeRow(['event', nowMs, told, this.#decisions(actions)])
    this.#finish(event)
  }

  /** `bus.takeWrites()` has returned some. */
  writesTaken(): void {
    this.#writeRow(['writes'])
  }

  /** One of them is about to be handed to the system. */
  writing(write: Write): void {
    if (this.#isOver) return
    const { lines, hash } = hashOutput(write.buffers, this.#options.hasPayloads)
    this.#writeRow(['write', write.kind, write.id, lines, hash])
  }

  /** `actions` are what `bus.wrote(write, pendingBytes, nowMs)` returned. */
  wrote(write: Write, pendingBytes: number, nowMs: number, actions: readonly Action[]): void {
    if (this.#isOver) return
    this.#writeRow(['wrote', nowMs, write.kind, write.id, pendingBytes, this.#decisions(actions)])
  }

  close(): Promise<void> {
    for (const [sender, bytes] of this.#unfinished) this.#writeSent(sender, maskBeginning(bytes))
    this.#unfinished.clear()
    this.#isOver = true
    return new Promise((resolve) => this.#stream.end(resolve))
  }

  #decisions(actions: readonly Action[]): string[] {
    return actions.map((action) => decisionOf(action, this.#options.hasPayloads))
  }

  #recordBytes(event: Extract<BusEvent, { bytes: Buffer }>): Record<string, unknown> {
    const { bytes } = event
    if (this.#options.hasPayloads) return { base64: bytes.toString('base64') }
    const sender = senderOf(event)
    // The gateway's replies are whole lines.
    if (sender === undefined) return { base64: maskLines(bytes).toString('base64') }
    this.#hold(sender, bytes)
    return { count: bytes.length }
  }

  /** Lines are masked when they are complete: a key tells what its value may show. */
  #hold(sender: string, chunk: Buffer): void {
    const held = this.#unfinished.get(sender)
    const bytes = held === undefined ? chunk : Buffer.concat([held, chunk])
    const end = bytes.lastIndexOf(NEWLINE) + 1
    if (end > 0) this.#writeSent(sender, maskLines(bytes.subarray(0, end)))
    const rest = bytes.subarray(end)
    if (rest.length > MAX_UNFINISHED_BYTES) this.#writeSent(sender, maskBeginning(rest))
    if (rest.length === 0 || rest.length > MAX_UNFINISHED_BYTES) this.#unfinished.delete(sender)
    else this.#unfinished.set(sender, Buffer.from(rest))
  }

  /** A peer that sends no more has finished its last line. */
  #finish(event: BusEvent): void {
    const sender = senderThatEnds(event)
    const bytes = sender === undefined ? undefined : this.#unfinished.get(sender)
    if (bytes === undefined) return
    this.#unfinished.delete(sender!)
    this.#writeSent(sender!, event.type === 'client-closed' ? maskBeginning(bytes) : maskLine(bytes))
  }

  #writeSent(sender: string, bytes: Buffer): void {
    this.#writeRow(['sent', sender, bytes.toString('base64')])
  }

  #writeRow(row: Row): void {
    this.#write(row)
  }

  #write(value: unknown): void {
    if (this.#isOver) return
    this.#stream.write(`${JSON.stringify(value)}\n`)
    if (this.#stream.writableLength > MAX_WAITING_BYTES) this.#giveUp('the disk is too slow')
  }

  #giveUp(why: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#unfinished.clear()
    this.#stream.destroy()
    this.#options.onTrouble(`recording ended: ${why}; what is in ${this.#options.file} can be replayed up to there`)
  }
}

function senderThatEnds(event: BusEvent): string | undefined {
  if (event.type === 'client-ended' || event.type === 'client-closed') return `client ${event.client}`
  const isEnd = event.type === 'worker-silent' && event.pipe === 'stdout'
  return isEnd ? `worker ${event.worker}.${event.generation}` : undefined
}

function maskLines(bytes: Buffer): Buffer {
  const masked = Buffer.from(bytes)
  let start = 0
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    maskLine(bytes.subarray(start, end)).copy(masked, start)
    start = end + 1
  }
  return masked
}

function openNew(file: string): number {
  try {
    return openSync(file, 'wx', 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EEXIST' ? 'it exists already, and a recording is never written over' : whyUnwritable(error)
    throw new UserMistake(`cannot record to ${file}: ${why}; name another file with --record`)
  }
}
