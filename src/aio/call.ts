/**
 * One call that is open: its timer, its partials, its place in the trace, and its one end.
 *
 * The first end wins and is kept; whatever comes later is ignored. The trace is told before the caller, so that a query
 * sees every call whose answer was delivered. It does not know how the agent is reached.
 */
import type { Cancel, ChildStart, OpenChild, Outcome, Settlement } from './adapter.ts'
import type { Answer } from './answers.ts'
import type { Envelope } from './envelope.ts'
import { fault, type Reason } from './faults.ts'
import { isObject, type JsonObject } from './json-object.ts'
import type { Ancestor } from './parents.ts'
import type { CallEnd, CallError, Caller, ErrorBody } from './port.ts'

/** What the gateway does for its calls. */
export interface CallHost {
  nowMs(): number
  after(delayMs: number, run: () => void): () => void
  sent(call: OpenCall, worker: string): void
  /** A worker got what was over once it was written. */
  reached(call: OpenCall, worker: string): void
  partial(call: OpenCall, seq: number, outputs: readonly unknown[], extra: JsonObject): void
  room(call: OpenCall): Promise<void> | undefined
  child(call: OpenCall, start: ChildStart): OpenChild
  ended(call: OpenCall, end: CallEnd, answer: Answer | undefined): void
  broke(error: unknown): void
}

type End = Pick<CallEnd, 'status' | 'output' | 'bytesOut'> & { readonly error: CallError | undefined }

export class OpenCall implements Outcome {
  readonly caller: Caller
  readonly envelope: Envelope
  readonly place: Ancestor
  worker: string | null = null
  /** The call that made its caller, a worker, make it. */
  cause: Ancestor | undefined
  /** Another node records it. */
  isFar = false
  /** Its neighbours among the open calls of its caller. */
  older: OpenCall | undefined
  newer: OpenCall | undefined
  readonly #host: CallHost
  readonly #timeoutMs: number
  #cancel: Cancel | undefined
  #stopTimer: (() => void) | undefined
  #partials = 0
  #firstPartialAtMs: number | undefined
  #isOpen = true

  constructor(host: CallHost, caller: Caller, envelope: Envelope, place: Ancestor, timeoutMs: number) {
    this.#host = host
    this.caller = caller
    this.envelope = envelope
    this.place = place
    this.#timeoutMs = timeoutMs
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** The agent has it. */
  get isSent(): boolean {
    return this.#stopTimer !== undefined
  }

  /** Hands the call to an agent; an adapter may end it before it returns. */
  begin(invoke: (outcome: Outcome) => Cancel): void {
    try {
      const cancel = invoke(this)
      if (this.#isOpen) this.#cancel = cancel
    } catch (error) {
      this.broke(error)
    }
  }

  sent(worker: string | null): void {
    if (!this.#isOpen) return worker === null ? undefined : this.#host.reached(this, worker)
    if (worker !== null && worker !== this.worker) this.#host.sent(this, worker)
    this.worker = worker
    this.#stopTimer ??= this.#host.after(this.#timeoutMs, () => this.#timeOut())
  }

  partial(outputs: readonly unknown[], extra: JsonObject = {}): void {
    if (!this.#isOpen) return
    this.#partials += 1
    this.#firstPartialAtMs ??= this.#host.nowMs()
    this.#host.partial(this, this.#partials, outputs, extra)
  }

  room(): Promise<void> | undefined {
    return this.#isOpen ? this.#host.room(this) : undefined
  }

  settle(answer: Answer, settlement: Settlement): void {
    const { bytes, traceError } = settlement
    const error = 'error' in answer ? answer.error : traceError
    const output = 'error' in answer ? null : answer.result
    this.#end({ status: error === undefined ? 'ok' : 'error', error, output, bytesOut: bytes }, answer)
  }

  fail(error: ErrorBody, traceOnly: JsonObject = {}): void {
    const data = isObject(error.data) ? { ...error.data, ...traceOnly } : error.data
    this.#end({ status: 'error', error: { ...error, data }, output: null, bytesOut: 0 }, { error })
  }

  child(start: ChildStart): OpenChild {
    return this.#host.child(this, start)
  }

  broke(error: unknown): void {
    this.#host.broke(error)
    this.fail(fault('internal_error'))
  }

  /** Ends the call from the caller's side: the agent is told, the caller is owed nothing. */
  abandon(reason: Reason): void {
    this.#stop(fault(reason), undefined)
  }

  /** Ends the call from the side of the bus: the agent is told and so is the caller. */
  stop(error: ErrorBody): void {
    this.#stop(error, { error })
  }

  #timeOut(): void {
    this.stop(fault('agent_timeout', { agent: this.envelope.agent, timeout_ms: this.#timeoutMs }))
  }

  #stop(error: ErrorBody, answer: Answer | undefined): void {
    const cancel = this.#cancel
    if (this.#isOpen) this.place.isGivenUp = true
    this.#end({ status: 'error', error, output: null, bytesOut: 0 }, answer)
    cancel?.()
  }

  #end(end: End, answer: Answer | undefined): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#cancel = undefined
    this.#stopTimer?.()
    const { traceId, callId } = this.place
    const { error, ...rest } = end
    const record: CallEnd = {
      traceId,
      callId,
      ...rest,
      partials: this.#partials,
      endedAtMs: this.#host.nowMs(),
      ...(error === undefined ? {} : { error }),
      ...(this.#firstPartialAtMs === undefined ? {} : { firstPartialAtMs: this.#firstPartialAtMs }),
      ...(this.worker === null ? {} : { worker: this.worker }),
    }
    this.#host.ended(this, record, answer)
  }
}
