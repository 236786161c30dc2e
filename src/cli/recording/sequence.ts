/**
 * A stretch of a recording as a sequence diagram for the terminal: clients left, the bus in the middle, workers right.
 *
 * It shows kinds, ids and methods of messages, never payloads; text from peers is escaped.
 */
import type { BusEvent, Write } from '../../kernel/events.ts'
import { Envelope, SHAPE } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { printable } from '../../wire/printable.ts'
import { linesOf, senderOf } from './format.ts'
import type { ReplayListener } from './replay.ts'

interface Step {
  readonly number: number
  readonly atMs: number
  readonly from: string
  readonly to: string
  readonly label: string
}

const COLUMN = 12
const BUS = 'bus'
const MAX_LABEL = 60

export class Sequence implements ReplayListener {
  readonly #first: number
  readonly #last: number
  readonly #steps: Step[] = []
  /** What peers have begun to say. */
  readonly #held = new Map<string, Buffer>()
  #atMs = 0

  constructor(first: number, last: number) {
    this.#first = first
    this.#last = last
  }

  applied(number: number, atMs: number, event: BusEvent, decisions: readonly string[]): void {
    this.#atMs = atMs
    const sender = senderOf(event)
    if (sender !== undefined) this.#received(number, sender, (event as { bytes: Buffer }).bytes)
    else if (NEWS[event.type] !== undefined) this.#add(number, nameOf(event), BUS, NEWS[event.type]!)
    for (const decision of decisions) this.#decided(number, decision)
  }

  written(number: number, { kind, id, buffers }: Write): void {
    const name = `${kind} ${id}`
    for (const line of linesOf(Buffer.concat(buffers))) this.#add(number, BUS, name, describe(line))
  }

  #received(number: number, sender: string, chunk: Buffer): void {
    const held = this.#held.get(sender)
    const bytes = held === undefined ? chunk : Buffer.concat([held, chunk])
    const end = bytes.lastIndexOf(10) + 1
    this.#held.set(sender, Buffer.from(bytes.subarray(end)))
    const name = sender.replace(/\.\d+$/, '')
    for (const line of linesOf(bytes.subarray(0, end))) this.#add(number, name, BUS, describe(line))
  }

  #decided(number: number, decision: string): void {
    const [what = '', who = ''] = decision.split(' ')
    const peer = /-(client|worker)$/.exec(what)?.[1]
    if (peer !== undefined) this.#add(number, BUS, `${peer} ${Number.parseInt(who, 10)}`, decision)
  }

  #add(number: number, from: string, to: string, label: string): void {
    if (number < this.#first || number > this.#last) return
    this.#steps.push({ number, atMs: this.#atMs, from, to, label })
  }

  render(): string {
    if (this.#steps.length === 0) return 'nothing was said between these events\n'
    const names = participants(this.#steps)
    const start = this.#steps[0]!.atMs
    const head = `${' '.repeat(18)}${names.map((name) => center(name)).join('')}`
    const rows = this.#steps.map((step) => renderStep(step, names, start))
    return `${[head.trimEnd(), ...rows].join('\n')}\n`
  }
}

const NEWS: Partial<Record<BusEvent['type'], string>> = {
  'client-opened': 'connects',
  'client-ended': 'ends its side',
  'client-closed': 'is gone',
  'worker-opened': 'runs',
  'worker-failed': 'could not be started',
  'worker-silent': 'closes a pipe',
  'worker-ended': 'exits',
}

function nameOf(event: BusEvent): string {
  if ('client' in event) return `client ${event.client}`
  return 'worker' in event ? `worker ${event.worker}` : BUS
}

function participants(steps: readonly Step[]): string[] {
  const names = new Set(steps.flatMap(({ from, to }) => [from, to]))
  const rank = (name: string): number => (name.startsWith('client') ? 0 : name === BUS ? 1 : 2)
  const numberOf = (name: string): number => Number(name.split(' ')[1] ?? 0)
  return [...names].sort((a, b) => rank(a) - rank(b) || numberOf(a) - numberOf(b))
}

function center(name: string): string {
  const left = Math.floor((COLUMN - name.length) / 2)
  return name.padStart(left + name.length).padEnd(COLUMN)
}

function renderStep({ number, atMs, from, to, label }: Step, names: readonly string[], startMs: number): string {
  const cells = names.map(() => '│'.padStart(COLUMN / 2 + 1).padEnd(COLUMN)).join('')
  const at = (name: string): number => names.indexOf(name) * COLUMN + COLUMN / 2
  const left = Math.min(at(from), at(to))
  const right = Math.max(at(from), at(to))
  const shaft = '─'.repeat(Math.max(0, right - left - 2))
  const arrow = at(from) < at(to) ? `${shaft}▶` : `◀${shaft}`
  const line = left === right ? cells : `${cells.slice(0, left + 1)}${arrow}${cells.slice(right)}`
  const seconds = ((atMs - startMs) / 1000).toFixed(3)
  return `${String(number).padStart(7)} ${`+${seconds}`.padStart(9)} ${line} ${label}`
}

const envelope = new Envelope()

/** What kind of message it is, with its id and method as they are spelled. */
function describe(line: Buffer): string {
  const shape = envelope.read(line, 0, line.length)
  if (shape === SHAPE.notJson || shape === SHAPE.bad) return `no message (${line.length} bytes)`
  const id = spelled(FIELD.id)
  const method = spelled(FIELD.method)
  if (shape === SHAPE.request) return `${method} id ${id}`
  if (shape === SHAPE.notification) return `${method}`
  return envelope.has(FIELD.error) ? `error ${spelled(FIELD.errorCode)} id ${id}` : `result id ${id}`
}

function spelled(field: (typeof FIELD)[keyof typeof FIELD]): string {
  if (!envelope.has(field)) return '?'
  const text = envelope.spelling(field).toString()
  const bare = text.startsWith('"') && field === FIELD.method ? text.slice(1, -1) : text
  return printable(bare).slice(0, MAX_LABEL)
}
