/**
 * The journal of a simulated bus: it writes late, answers in portions, fails now and then, and outlives the bus. What it has
 * not said to have written it may forget.
 */
import type { BusEvent, JournalOrder, StoredSession, Written } from '../../src/kernel/events.ts'
import type { EntryKind } from '../../src/kernel/kept/journal.ts'

type Read = Extract<JournalOrder, { order: 'read' }>
type Write = Exclude<JournalOrder, Read>

interface Line {
  readonly kind: EntryKind
  readonly bytes: Buffer
}

interface Volume {
  readonly session: string
  readonly pool: string
  readonly principal: string
  readonly cwd: string
  readonly lines: Map<number, Line>
  readonly states: Map<string, { readonly seq: number; readonly bytes: Buffer }>
  seq: number
  firstSeq: number
  title: string
  answer: string | undefined
  isLost: boolean
  atMs: number
}

export class KeptShelf {
  readonly #volumes = new Map<string, Volume>()
  #waiting: Write[] = []
  #reads: Read[] = []
  isWriting = false

  get isIdle(): boolean {
    return this.#reads.length === 0 && (this.#waiting.length === 0 || !this.isWriting)
  }

  take(order: JournalOrder): void {
    if (order.order === 'read') this.#reads.push(order)
    else if (this.isWriting) this.#waiting.push(copyOf(order))
  }

  /** The bus has gone, with what was not written. */
  close(): void {
    this.#waiting = []
    this.#reads = []
    this.isWriting = false
  }

  fail(): BusEvent {
    this.isWriting = false
    this.#waiting = []
    return { type: 'journal-changed', isWriting: false }
  }

  recover(): BusEvent[] {
    this.isWriting = true
    return [
      { type: 'journal-opened', sessions: [...this.#volumes.values()].map(storedOf) },
      { type: 'journal-changed', isWriting: true },
    ]
  }

  /** Writes the oldest `count` orders; says so. */
  write(count: number): BusEvent | undefined {
    const upTo = new Map<string, Written>()
    for (const order of this.#waiting.splice(0, count)) {
      this.#apply(order)
      if (order.order === 'append') upTo.set(order.key, [order.key, order.life, order.seq])
    }
    return upTo.size === 0 ? undefined : { type: 'journal-written', upTo: [...upTo.values()] }
  }

  /** Answers the oldest question, with up to `count` lines. */
  answer(count: number): BusEvent | undefined {
    const read = this.#reads.shift()
    if (read === undefined) return undefined
    const volume = this.#volumes.get(read.key)
    const lines = [...(volume?.lines ?? [])]
      .filter(([seq]) => seq >= read.from && seq <= read.to)
      .sort(([a], [b]) => a - b)
      .slice(0, count)
    const states = read.wantsHead ? [...(volume?.states ?? [])] : []
    const bytes = Buffer.concat([...lines.map(([, line]) => line.bytes), ...states.map(([, state]) => state.bytes)])
    const entries = lines.map(([seq, { kind, bytes: of }]) => ({ seq, kind, length: of.length }))
    const told = { type: 'journal-lines', reader: read.reader, entries, bytes } as const
    if (!read.wantsHead) return told
    const held = states.map(([kind, { seq, bytes: of }]) => ({ kind, seq, length: of.length }))
    return { ...told, head: { answer: volume?.answer, states: held } }
  }

  /** The lines of a session in order; undefined: it is not known. */
  linesOf(principal: string, session: string): readonly Buffer[] | undefined {
    const volume = this.#volumes.get(JSON.stringify([principal, session]))
    if (volume === undefined) return undefined
    return [...volume.lines].sort(([a], [b]) => a - b).map(([, { bytes }]) => bytes)
  }

  /** What holds in the session. */
  statesOf(principal: string, session: string): readonly Buffer[] {
    const volume = this.#volumes.get(JSON.stringify([principal, session]))
    return [...(volume?.states.values() ?? [])].map(({ bytes }) => bytes)
  }

  #apply(order: Write): void {
    const { key } = order
    const volume = this.#volumes.get(key)
    if (order.order === 'open') {
      if (volume === undefined || !order.isAgain) this.#volumes.set(key, volumeOf(order))
      return
    }
    if (volume === undefined) return
    if (order.order === 'delete') this.#volumes.delete(key)
    if (order.order === 'append' && !volume.lines.has(order.seq)) {
      volume.lines.set(order.seq, order)
      volume.seq = Math.max(volume.seq, order.seq)
      volume.atMs = order.atMs
    }
    if (order.order === 'trim') {
      for (const seq of [...volume.lines.keys()]) if (seq < order.before) volume.lines.delete(seq)
      volume.firstSeq = order.before
      volume.seq = Math.max(volume.seq, order.before - 1)
      if (order.isRestart) volume.states.clear()
    }
    if (order.order !== 'note') return
    volume.title = order.title ?? volume.title
    volume.answer = order.answer ?? volume.answer
    volume.isLost = order.isLost ?? volume.isLost
    if (order.state !== undefined) volume.states.set(order.state.kind, order.state)
  }
}

/** What is lent is not kept. */
function copyOf(order: Write): Write {
  if (order.order === 'append') return { ...order, bytes: Buffer.from(order.bytes) }
  if (order.order !== 'note' || order.state === undefined) return order
  return { ...order, state: { ...order.state, bytes: Buffer.from(order.state.bytes) } }
}

function volumeOf({ session, pool, principal, cwd, atMs }: Extract<Write, { order: 'open' }>): Volume {
  const empty = { lines: new Map(), states: new Map(), seq: 0, firstSeq: 1, title: '', answer: undefined }
  return { session, pool, principal, cwd, isLost: false, atMs, ...empty }
}

function storedOf(volume: Volume): StoredSession {
  const { session, pool, principal, cwd, title, seq, firstSeq, isLost, lines, atMs } = volume
  const bytes = [...lines.values()].reduce((sum, line) => sum + line.bytes.length, 0)
  const times = { createdAtMs: atMs + 1, updatedAtMs: atMs + 1 }
  return { session, pool, principal, cwd, title, seq, firstSeq, isLost, bytes, ...times }
}
