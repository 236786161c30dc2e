/**
 * What was said in a session, as far as this page knows it: neighbours by number, live at the end, more at the beginning when it is
 * wanted (contract 15.8, 15.15).
 *
 * Whatever is missing between what it has and what comes is asked for, so nothing is left out and nothing comes twice. Beyond a
 * bound the oldest are forgotten.
 */
import { signal } from '@preact/signals'
import { ask } from '../api.ts'
import { followTopic } from '../feed.ts'

export interface Line {
  readonly seq: number
  readonly method: string
  // biome-ignore lint/suspicious/noExplicitAny: what peers say is looked at where it is shown
  readonly params: any
}

interface Page {
  readonly items: readonly Line[]
  readonly seq: number
  readonly first_seq: number
}

const PAGE = 500
const MAX_LINES = 5_000
const TOLD_MS = 80

export class SessionLines {
  readonly #path: string
  readonly #leave: () => void
  #held: Line[] = []
  #firstSeq = 1
  /** The newest number that is known to exist. */
  #newest = 0
  #isAsking = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false
  /** In order, each once. */
  readonly lines = signal<readonly Line[]>([])
  readonly error = signal<unknown>(undefined)
  readonly isLoaded = signal(false)

  constructor(session: string) {
    this.#path = `sessions/${encodeURIComponent(session)}/lines`
    this.#leave = followTopic(`session:${encodeURIComponent(session)}`, (data) => this.#take(data as Partial<Line>))
    void this.load()
  }

  /** There is more before what is shown. */
  get hasEarlier(): boolean {
    return (this.#held[0]?.seq ?? 1) > this.#firstSeq
  }

  /** The last of it, or what is missing at the end. */
  async load(): Promise<void> {
    if (this.#isAsking || this.#isOver) return
    this.#isAsking = true
    this.error.value = undefined
    try {
      if (!this.isLoaded.value) await this.#begin()
      while (this.#last < this.#newest && !this.#isOver) this.#add(await this.#ask(this.#last + 1))
      this.isLoaded.value = true
    } catch (error) {
      this.error.value = error
    } finally {
      this.#isAsking = false
      this.#tell()
    }
  }

  async earlier(): Promise<void> {
    const first = this.#held[0]?.seq ?? 1
    if (this.#isAsking || first <= this.#firstSeq) return
    this.#isAsking = true
    try {
      const { items } = await this.#ask(Math.max(this.#firstSeq, first - PAGE))
      this.#held = [...items.filter(({ seq }) => seq < first), ...this.#held]
    } finally {
      this.#isAsking = false
      this.#tell()
    }
  }

  close(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#leave()
  }

  get #last(): number {
    return this.#held.at(-1)?.seq ?? this.#newest
  }

  /** As much of the end as is held at most. */
  async #begin(): Promise<void> {
    const { seq, first_seq: first } = await ask<Page>(`${this.#path}?from=1&limit=1`)
    this.#firstSeq = first
    this.#newest = Math.max(this.#newest, seq)
    this.#held = []
    this.#add(await this.#ask(Math.max(first, seq - MAX_LINES + 1)))
  }

  #ask(from: number): Promise<Page> {
    return ask<Page>(`${this.#path}?from=${from}&limit=${PAGE}`)
  }

  #add({ items, seq }: Page): void {
    this.#newest = Math.max(this.#newest, seq)
    const last = this.#held.at(-1)?.seq ?? 0
    for (const line of items) if (line.seq > last) this.#held.push(line)
    // A page without anything new would be asked for again and again.
    if (items.every((line) => line.seq <= last)) this.#newest = this.#last
  }

  #take(line: Partial<Line>): void {
    if (line.seq === undefined) return
    this.#newest = Math.max(this.#newest, line.seq)
    const isNext = this.isLoaded.value && line.method !== undefined && line.seq === this.#last + 1
    if (isNext) this.#held.push(line as Line)
    else if (line.seq > this.#last) void this.load()
    this.#timer ??= setTimeout(() => this.#tell(), TOLD_MS)
  }

  #tell(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isOver) return
    const isTooMuch = this.#held.length > MAX_LINES + PAGE
    if (isTooMuch) this.#held = this.#held.slice(-MAX_LINES)
    this.lines.value = [...this.#held]
  }
}
