/**
 * The front's end of the thread: keeps one engine at hand, notices when it fails or stalls, and tries again later.
 *
 * State is `ok` or `failed`, nothing else; every change is reported once. A request that takes too long makes the store
 * failed ("slow") but is not abandoned: when its reply comes after all, the store is well again.
 */
import {
  describeFailure,
  type EngineCalls,
  type EngineError,
  type EngineOp,
  type EngineSettings,
  type FailureReason,
  type Opened,
} from './engine.ts'
import type { EngineHost, Outcome } from './engine-host.ts'

export type StoreState = 'ok' | 'failed'

export interface StateChange {
  readonly state: StoreState
  readonly reason?: FailureReason
  /** For the operator: what is wrong and what to do. */
  readonly message: string
}

export interface LinkTimes {
  /** A reply that takes longer means a disk that is too slow to rely on. */
  readonly stallMs: number
  readonly retryMs: number
}

const ADVICE: Record<FailureReason, string> = {
  in_use: 'another bus is using it; give this one its own aio.store.path',
  disk_full: 'the disk is full; make room, and the store is tried again by itself',
  disk_error: 'the disk reports an error; the store is tried again by itself',
  corrupt: 'the file is damaged or not a trace store; move it away or name another under aio.store.path',
  cannot_open: 'the file cannot be opened; check that its folder exists and may be written',
  not_ours: 'the path is not a plain file of this user; name one under aio.store.path, links are not followed',
  no_sqlite: 'there is nothing to write it with',
  slow: 'the disk does not answer in time',
  failed: 'see the reason',
}

/** A question may read the whole store, which is no fault of the disk. */
const QUESTION_PATIENCE = 12

const NOT_OPEN: EngineError = { reason: 'failed', message: 'the store is not open' }

export class StoreLink {
  state: StoreState = 'failed'
  failure: EngineError | undefined
  readonly #makeHost: () => EngineHost
  readonly #settings: EngineSettings
  readonly #times: LinkTimes
  readonly #nowMs: () => number
  readonly #onChange: (change: StateChange, opened?: Opened) => void
  #host: EngineHost | undefined
  #retry: NodeJS.Timeout | undefined
  #isClosed = false
  /** What is asked after a question waits for that question first, and for the disk only then. */
  #lastQuestion: Promise<unknown> = Promise.resolve()

  constructor(
    makeHost: () => EngineHost,
    settings: EngineSettings,
    times: LinkTimes,
    nowMs: () => number,
    onChange: (change: StateChange, opened?: Opened) => void,
  ) {
    this.#makeHost = makeHost
    this.#settings = settings
    this.#times = times
    this.#nowMs = nowMs
    this.#onChange = onChange
  }

  /** Resolves when the store is open, or known not to be, or after a stall. */
  async open(): Promise<void> {
    const isFirst = this.#host === undefined
    await this.#leave()
    if (this.#isClosed) return
    try {
      this.#host = this.#makeHost()
    } catch (error) {
      // A thread that cannot be had is a store that does not work.
      return this.#fail(describeFailure(error))
    }
    const asked = this.#host.ask('open', { settings: this.#settings, nowMs: this.#nowMs(), isFirst })
    const opened = this.#watch('open', asked, (value) => this.#becomeOk(value))
    await Promise.race([opened, delay(this.#times.stallMs)])
  }

  /** Never rejects, and settles only with what really happened, however late that is. */
  async ask<Op extends EngineOp>(
    op: Op,
    params: EngineCalls[Op]['params'],
  ): Promise<Outcome<EngineCalls[Op]['yields']>> {
    if (this.#host === undefined || this.state === 'failed') return { error: this.failure ?? NOT_OPEN }
    const asked = this.#host.ask(op, params)
    const watched = this.#watch(op, asked, () => {
      if (this.failure?.reason === 'slow') this.#becomeOk()
    })
    if (op === 'query') this.#lastQuestion = asked
    return watched
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#retry)
    await this.#leave()
  }

  /** A thread that hangs in the disk is not waited for longer than a stall. */
  async #leave(): Promise<void> {
    const host = this.#host
    if (host === undefined) return
    await Promise.race([host.ask('close', {}), delay(this.#times.stallMs)])
    host.end().catch(() => {})
  }

  async #watch<T>(op: EngineOp, asked: Promise<Outcome<T>>, onValue: (value: T) => void): Promise<Outcome<T>> {
    const limitMs = op === 'query' ? this.#times.stallMs * QUESTION_PATIENCE : this.#times.stallMs
    const clock = new AbortController()
    void this.#lastQuestion.then(() => {
      afterwards(limitMs, clock.signal, () => this.#fail({ reason: 'slow', message: `no reply for ${limitMs} ms` }))
    })
    const outcome = await asked
    clock.abort()
    if ('error' in outcome) this.#fail(outcome.error)
    else onValue(outcome.value)
    return outcome
  }

  #becomeOk(opened?: Opened): void {
    if (this.#isClosed || this.state === 'ok') return
    this.state = 'ok'
    this.failure = undefined
    this.#onChange({ state: 'ok', message: `traces are kept in ${this.#settings.path}` }, opened)
  }

  #fail(error: EngineError): void {
    if (this.#isClosed) return
    const isNews = this.failure === undefined
    this.state = 'failed'
    this.failure = error
    if (error.reason !== 'slow') this.#retryLater()
    if (!isNews) return
    const message = `traces are kept in memory only: ${this.#settings.path}: ${ADVICE[error.reason]} (${error.message})`
    this.#onChange({ state: 'failed', reason: error.reason, message })
  }

  #retryLater(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.open(), this.#times.retryMs)
    this.#retry.unref()
  }
}

function afterwards(ms: number, signal: AbortSignal, act: () => void): void {
  if (signal.aborted) return
  const timer = setTimeout(act, ms).unref()
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}
