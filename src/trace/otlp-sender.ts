/**
 * Sends spans to a collector, in batches, over OTLP/HTTP with JSON.
 *
 * Never in the way: what is added waits in a bounded queue, and the oldest spans go when it is full. A collector that is
 * away or busy is tried again with growing pauses, a batch at a time; one that refuses a batch loses that batch. The
 * operator is told once when it begins to fail and once when it works again. Headers may hold secrets and are never shown.
 */
import { type OtlpOptions, type OtlpSpan, wrapSpans } from './export-otlp.ts'

export interface SenderOptions extends OtlpOptions {
  readonly endpoint: string
  readonly headers?: Readonly<Record<string, string>>
  /** Told once of each change, with a sentence for the operator. */
  readonly onState?: (change: { readonly state: 'ok' | 'failed'; readonly message: string }) => void
  readonly fetch?: typeof fetch
  readonly maxQueued?: number
  readonly batchMs?: number
  readonly firstPauseMs?: number
  readonly timeoutMs?: number
}

const BATCH_SPANS = 512
const MAX_PAUSE_MS = 30_000
const MAX_ATTEMPTS = 8
/** The collector asks for another try, or something between us and it does; any other refusal is final. */
const RETRYABLE = new Set([408, 429, 502, 503, 504])

type Attempt = { readonly outcome: 'sent' } | { readonly outcome: 'refused' | 'again'; why: string; afterMs?: number }

export class OtlpSender {
  sent = 0
  dropped = 0
  readonly #options: SenderOptions
  readonly #busInstance: () => string
  #queue: OtlpSpan[] = []
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #isFailing = false
  readonly #stop = new AbortController()

  /** The instance is asked for late: a store knows it only once it is open. */
  constructor(options: SenderOptions, busInstance: () => string) {
    this.#options = options
    this.#busInstance = busInstance
  }

  add(span: OtlpSpan): void {
    if (this.#stop.signal.aborted) return
    this.#queue.push(span)
    const excess = this.#queue.length - (this.#options.maxQueued ?? 10_000)
    if (excess > 0) this.dropped += this.#queue.splice(0, excess).length
    if (this.#queue.length >= BATCH_SPANS) this.#start()
    else this.#timer ??= setTimeout(() => this.#start(), this.#options.batchMs ?? 1_000).unref()
  }

  /** Sends what is there, for at most `limitMs`, then gives up the rest. */
  async close(limitMs = 2_000): Promise<void> {
    this.#start()
    const limit = setTimeout(() => this.#stop.abort(), limitMs)
    await this.#sending
    clearTimeout(limit)
    this.#stop.abort()
    clearTimeout(this.#timer)
    this.dropped += this.#queue.splice(0).length
  }

  #start(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#drain().finally(() => {
      this.#sending = undefined
    })
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0 && !this.#stop.signal.aborted) {
      const spans = this.#queue.splice(0, BATCH_SPANS)
      await this.#deliver(spans).catch((error) => {
        this.dropped += spans.length
        this.#report(describe(error))
      })
    }
  }

  async #deliver(spans: OtlpSpan[]): Promise<void> {
    const body = JSON.stringify(wrapSpans(spans, this.#busInstance(), this.#options))
    let pauseMs = this.#options.firstPauseMs ?? 1_000
    for (let attempt = 1; attempt <= MAX_ATTEMPTS && !this.#stop.signal.aborted; attempt += 1) {
      const result = await this.#try(body)
      if (result.outcome === 'sent') {
        this.sent += spans.length
        return this.#report(undefined)
      }
      this.#report(result.why)
      if (result.outcome === 'refused') break
      await this.#pause(Math.min(result.afterMs ?? pauseMs * (0.75 + Math.random() / 2), MAX_PAUSE_MS))
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)
    }
    this.dropped += spans.length
  }

  async #try(body: string): Promise<Attempt> {
    const { endpoint, headers, fetch: post = fetch, timeoutMs = 10_000 } = this.#options
    try {
      const response = await post(endpoint, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
        redirect: 'error',
        signal: AbortSignal.any([this.#stop.signal, AbortSignal.timeout(timeoutMs)]),
      })
      await response.body?.cancel()
      if (response.ok) return { outcome: 'sent' }
      const why = `it answered ${response.status}`
      if (!RETRYABLE.has(response.status)) return { outcome: 'refused', why }
      return { outcome: 'again', why, ...retryAfter(response.headers.get('retry-after')) }
    } catch (error) {
      return { outcome: 'again', why: describe(error) }
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#stop
    return new Promise((resolve) => {
      if (signal.aborted) return resolve()
      const timer = setTimeout(done, ms).unref()
      signal.addEventListener('abort', done, { once: true })
      function done(): void {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
    })
  }

  #report(why: string | undefined): void {
    const isFailing = why !== undefined
    if (isFailing === this.#isFailing || this.#stop.signal.aborted) return
    this.#isFailing = isFailing
    const where = `the trace collector at ${new URL(this.#options.endpoint).origin}`
    const message = isFailing
      ? `${where} does not take spans: ${why}; check aio.otlp.endpoint and its headers`
      : `${where} takes spans again`
    this.#options.onState?.({ state: isFailing ? 'failed' : 'ok', message })
  }
}

function retryAfter(header: string | null): { afterMs?: number } {
  const seconds = header === null || !/^\d{1,6}$/.test(header) ? undefined : Number(header)
  return seconds === undefined ? {} : { afterMs: seconds * 1_000 }
}

/** `fetch failed` says nothing; its cause does. */
function describe(error: unknown): string {
  const { cause, message, name } = error as Error
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  return code ?? (name === 'TimeoutError' ? 'it did not answer in time' : message)
}
