/** A journal in memory, for the kernel on the clock of a test: it writes and answers when the test says so. */
import type { Written as Acknowledged, BusEvent, JournalOrder, StoredSession } from '../../src/kernel/events.ts'
import type { EntryKind } from '../../src/kernel/kept/journal.ts'
import type { KeptStage } from './kept-stage.ts'

interface Written {
  readonly stored: StoredSession
  readonly lines: Map<number, { kind: EntryKind; bytes: Buffer }>
  readonly states: Map<string, { seq: number; bytes: Buffer }>
  answer: string | undefined
}

type Read = Extract<JournalOrder, { order: 'read' }>

export class FakeJournal {
  readonly sessions = new Map<string, Written>()
  readonly reads: Read[] = []
  #taken = 0

  /** The stage begins with what this journal has. */
  open(stage: KeptStage): void {
    stage.tell({ type: 'journal-opened', sessions: [...this.sessions.values()].map(storedOf) })
    stage.tell({ type: 'journal-changed', isWriting: true })
  }

  /** A new stage has other orders. */
  restart(): void {
    this.#taken = 0
    this.reads.length = 0
  }

  /** Writes up to `count` orders and says so. */
  write(stage: KeptStage, count = Number.POSITIVE_INFINITY): void {
    const upTo = new Map<string, Acknowledged>()
    for (let done = 0; done < count && this.#taken < stage.journal.length; done++) {
      const order = stage.journal[this.#taken++]!
      if (order.order === 'read') this.reads.push(order)
      else this.#apply(order)
      if (order.order === 'append') upTo.set(order.key, [order.key, order.life, order.seq])
    }
    if (upTo.size > 0) stage.tell({ type: 'journal-written', upTo: [...upTo.values()] })
  }

  #apply(order: Exclude<JournalOrder, Read>): void {
    const written = this.sessions.get(order.key)
    if (order.order === 'open') {
      if (written !== undefined && order.isAgain) return
      const { session, pool, principal, cwd, atMs } = order
      const times = { createdAtMs: atMs, updatedAtMs: atMs, seq: 0, firstSeq: 1, bytes: 0, isLost: false }
      const stored = { session, pool, principal, cwd, title: '', ...times }
      this.sessions.set(order.key, { stored, lines: new Map(), states: new Map(), answer: undefined })
      return
    }
    if (written === undefined) return
    if (order.order === 'delete') this.sessions.delete(order.key)
    if (order.order === 'append') written.lines.set(order.seq, { kind: order.kind, bytes: Buffer.from(order.bytes) })
    if (order.order === 'trim')
      for (const seq of [...written.lines.keys()]) if (seq < order.before) written.lines.delete(seq)
    if (order.order === 'trim' && order.isRestart) written.states.clear()
    if (order.order !== 'note') return
    if (order.answer !== undefined) written.answer = order.answer
    if (order.state !== undefined)
      written.states.set(order.state.kind, { seq: order.state.seq, bytes: Buffer.from(order.state.bytes) })
  }

  /** Answers the oldest question; `maxLines` at a time. False: nothing was asked. */
  answer(stage: KeptStage, maxLines = 3): boolean {
    const read = this.reads.shift()
    if (read === undefined) return false
    stage.tell(this.#linesFor(read, maxLines))
    return true
  }

  #linesFor({ key, reader, from, to, wantsHead }: Read, maxLines: number): BusEvent {
    const written = this.sessions.get(key)
    const found = [...(written?.lines ?? [])]
      .filter(([seq]) => seq >= from && seq <= to)
      .sort((a, b) => a[0] - b[0])
      .slice(0, maxLines)
    const states = wantsHead ? [...(written?.states ?? [])] : []
    const bytes = Buffer.concat([...found.map(([, line]) => line.bytes), ...states.map(([, state]) => state.bytes)])
    const entries = found.map(
      ([
        seq,
        {
          kind,
          bytes: { length },
        },
      ]) => ({ seq, kind, length }),
    )
    const head = {
      answer: written?.answer,
      states: states.map(
        ([
          kind,
          {
            seq,
            bytes: { length },
          },
        ]) => ({ kind, seq, length }),
      ),
    }
    return { type: 'journal-lines', reader, entries, bytes, ...(wantsHead ? { head } : {}) }
  }
}

function storedOf({ stored, lines }: Written): StoredSession {
  const numbers = [...lines.keys()]
  const bytes = [...lines.values()].reduce((sum, line) => sum + line.bytes.length, 0)
  return { ...stored, seq: Math.max(0, ...numbers), firstSeq: numbers.length === 0 ? 1 : Math.min(...numbers), bytes }
}
