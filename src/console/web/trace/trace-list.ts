/**
 * The traces that fit a filter, newest first, as far as this page knows them: live at the top, more at the end when it is wanted
 * (contract 15.9).
 *
 * The bus only says that something has changed; then the newest are asked for again, and those among the known that were still open.
 * What is shown stays until what replaces it is there.
 */
import { signal } from '@preact/signals'
import { ask } from '../api.ts'
import { followTopic } from '../feed.ts'
import type { Summary } from './trace.ts'

interface Page {
  readonly items: readonly Summary[]
  readonly next_cursor?: string
}

const FIRST_PAGE = 100
const PAGE = 500
const REFRESH_MS = 500
const TYPING_MS = 200
/** Beyond this the page wants a filter rather than more. */
export const MAX_TRACES = 20_000
/** Of open traces further down so many are looked after. */
const MAX_OPEN = 20

export class TraceList {
  readonly items = signal<readonly Summary[] | undefined>(undefined)
  readonly error = signal<unknown>(undefined)
  readonly hasMore = signal(false)
  readonly #leave: () => void
  #filters: string | undefined
  #cursor: string | undefined
  #abort = new AbortController()
  #isStale = false
  #isAsking = false
  #isMoreWanted = false
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    this.#leave = followTopic('traces', () => this.#changed())
  }

  close(): void {
    this.#leave()
    this.#abort.abort()
    clearTimeout(this.#timer)
  }

  /** Whoever types is not asked for with every letter. */
  filter(filters: string): void {
    if (filters === this.#filters) return
    const isFirst = this.#filters === undefined
    this.#filters = filters
    this.#restart(isFirst ? 0 : TYPING_MS)
  }

  retry(): void {
    this.#restart(0)
  }

  async more(): Promise<void> {
    this.#isMoreWanted = this.#isAsking
    if (this.#cursor === undefined || this.#isAsking) return
    await this.#exclusively(async (signal) => {
      const page = await this.#ask({ limit: String(PAGE), cursor: this.#cursor! }, signal)
      this.#show([...(this.items.value ?? []), ...page.items], page.next_cursor)
    })
  }

  #restart(waitMs: number): void {
    this.#abort.abort()
    this.#abort = new AbortController()
    this.#isAsking = false
    clearTimeout(this.#timer)
    this.error.value = undefined
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#exclusively(async (signal) => {
        const { items, next_cursor } = await this.#ask({ limit: String(FIRST_PAGE) }, signal)
        this.#show(items, next_cursor)
      })
    }, waitMs)
  }

  /** Something happened, or the bus is there again. */
  #changed(): void {
    this.#isStale = true
    if (this.items.value === undefined && this.error.value !== undefined) this.retry()
    else this.#schedule()
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isAsking || this.items.value === undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#isStale = false
      void this.#exclusively((signal) => this.#refresh(signal))
    }, REFRESH_MS)
  }

  async #exclusively(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#abort
    this.#isAsking = true
    try {
      await work(signal)
      this.error.value = undefined
    } catch (error) {
      if (!signal.aborted) this.error.value = error
    }
    if (signal.aborted) return
    this.#isAsking = false
    if (this.#isMoreWanted) await this.more()
    else if (this.#isStale) this.#schedule()
  }

  async #refresh(signal: AbortSignal): Promise<void> {
    const fresh = await this.#ask({ limit: String(FIRST_PAGE) }, signal)
    const joined = join(this.items.value ?? [], fresh.items, fresh.next_cursor !== undefined)
    const open = joined.older.filter(({ status }) => status === 'active').slice(0, MAX_OPEN)
    const now = new Map<string, Summary | undefined>()
    for (const { trace_id } of open) {
      const { items } = await this.#ask({ limit: '10', prefix: trace_id }, signal)
      now.set(
        trace_id,
        items.find((each) => each.trace_id === trace_id),
      )
    }
    const older = joined.older.flatMap((row) => (now.has(row.trace_id) ? (now.get(row.trace_id) ?? []) : row))
    this.#show([...fresh.items, ...older], joined.isAnew ? fresh.next_cursor : this.#cursor)
  }

  #show(items: readonly Summary[], cursor: string | undefined): void {
    this.items.value = items
    this.#cursor = items.length < MAX_TRACES ? cursor : undefined
    this.hasMore.value = cursor !== undefined
  }

  #ask(params: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Page> {
    const query = new URLSearchParams(this.#filters)
    for (const [name, value] of Object.entries(params)) query.set(name, value)
    return ask<Page>(`traces?${query}`, { signal })
  }
}

/** What is behind the newest; nothing, if it is not known how they join. */
export function join(
  known: readonly Summary[],
  fresh: readonly Summary[],
  hasOlder: boolean,
): { readonly older: readonly Summary[]; readonly isAnew: boolean } {
  if (!hasOlder) return { older: [], isAnew: true }
  const ids = new Set(fresh.map(({ trace_id }) => trace_id))
  const last = known.findLastIndex(({ trace_id }) => ids.has(trace_id))
  return last === -1 ? { older: [], isAnew: true } : { older: known.slice(last + 1), isAnew: false }
}
