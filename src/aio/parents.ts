/**
 * Finds the place of a call in the execution graph: its trace, its parent, its depth.
 *
 * The rules, in order (spec N16): a W3C `traceparent` that the bus gave out, an explicit `stdio-bus/parent`, the only
 * open call of the worker that asks. A parent is always an older call that is remembered here, so a graph has no loops.
 * Where the parent of a worker's call is not known, it is taken to stand below the deepest call the worker has in hand, or
 * had a moment ago: every chain reaches its bound. Memory is bounded: the oldest calls are forgotten and can then be
 * nobody's parent.
 */
import type { OpenCall } from './call.ts'
import { InHand } from './in-hand.ts'
import type { JsonObject } from './json-object.ts'
import type { CallCause, Caller, Origin, TraceIds } from './port.ts'
import { Recent } from './recent.ts'

export const MAX_DEPTH = 32
const REMEMBERED_CALLS = 10_000
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-|$)/
const LOCAL: Origin = { principal: 'local' }
const PARENT_KEY = 'stdio-bus/parent'

/** A call as later calls may refer to it. */
export interface Ancestor {
  readonly traceId: string
  readonly callId: number
  readonly depth: number
  /** Set when the caller is part of an OpenTelemetry trace of its own. */
  readonly otelTraceId: string | undefined
  readonly origin: Origin
  /** Nobody waits for it any more: its caller has gone or cancelled it, or its time was over. */
  isGivenUp?: boolean
}

export interface Placement {
  /** undefined: one must be issued. */
  readonly traceId: string | undefined
  readonly parentId: number | null
  readonly depth: number
  readonly otelTraceId: string | undefined
  readonly origin: Origin
  /** For whom the parent is; undefined: there is none. */
  readonly parentOrigin?: Origin | undefined
  /** The call in hand that made a worker call; undefined: any of them may have. */
  readonly cause: Ancestor | undefined
  /** Whatever made the worker call was given up. */
  readonly isOrphan: boolean
}

export function callKey(call: { readonly traceId: string; readonly callId: number }): string {
  return `${call.traceId}#${call.callId}`
}

export class Parents {
  readonly #ids: TraceIds
  readonly #calls = new Recent<Ancestor>(REMEMBERED_CALLS)
  readonly #spans = new Recent<Ancestor>(REMEMBERED_CALLS)
  /** Of workers that live. */
  readonly #hands = new Map<string, InHand>()
  readonly #nowMs: () => number

  constructor(ids: TraceIds, nowMs: () => number) {
    this.#ids = ids
    this.#nowMs = nowMs
  }

  place(caller: Caller, traceId: string | undefined, meta: JsonObject): Placement {
    if (caller.cause !== undefined) return carried(caller, caller.cause, traceId)
    const inbound = readTraceparent(meta['traceparent'])
    const hand = this.#handOf(caller)
    const named = [inbound && this.#spans.get(inbound.spanId), this.#calls.get(String(meta[PARENT_KEY]))].find(
      (call) => call !== undefined && (traceId === undefined || call.traceId === traceId),
    )
    const parent = named ?? onlyOne(hand?.calls(traceId))
    const cause = parent !== undefined && hand?.has(parent) ? parent : undefined
    return {
      traceId: traceId ?? parent?.traceId,
      parentId: parent?.callId ?? null,
      depth: (cause?.depth ?? this.#guessDepth(hand, traceId, named)) + 1,
      otelTraceId: inbound?.otelTraceId ?? parent?.otelTraceId,
      origin: originOf(caller, parent, hand),
      parentOrigin: parent?.origin,
      cause,
      isOrphan: hand !== undefined && this.#isOrphan(hand, named),
    }
  }

  /** What is not known may stand below the deepest of all that it can be. */
  #guessDepth(hand: InHand | undefined, traceId: string | undefined, named: Ancestor | undefined): number {
    const ofTrace = deepest(hand?.calls(traceId))
    const inHand = ofTrace > 0 ? ofTrace : deepest(hand?.calls())
    return Math.max(named?.depth ?? 0, inHand > 0 ? inHand : (hand?.glow.depth(this.#nowMs()) ?? 0))
  }

  #isOrphan(hand: InHand, named: Ancestor | undefined): boolean {
    if (named !== undefined) return named.isGivenUp === true
    return deepest(hand.calls()) === 0 && hand.glow.isUnwanted(this.#nowMs())
  }

  #handOf(caller: Caller): InHand | undefined {
    return caller.kind === 'worker' ? this.#hands.get(caller.key) : undefined
  }

  remember(call: Ancestor): void {
    this.#calls.set(callKey(call), call)
  }

  opened(worker: string, call: Ancestor): void {
    this.#openHand(worker).take(call)
  }

  /** The worker has let go of the call, or is to; returns the calls it has made that nobody wants any more. */
  closed(worker: string, call: Ancestor): readonly OpenCall[] {
    return this.#hands.get(worker)?.letGo(call, this.#nowMs()) ?? []
  }

  /** A notification was written to the worker, which is all there is to it. */
  reached(worker: string, call: Ancestor): void {
    this.#openHand(worker).glow.done(call.depth, this.#nowMs())
  }

  /** A worker has made a call. */
  made(call: OpenCall, cause: Ancestor | undefined): void {
    this.#handOf(call.caller)?.made(call, cause)
  }

  /** A call that a worker has made is over. */
  over(call: OpenCall, cause: Ancestor | undefined): void {
    this.#handOf(call.caller)?.over(call, cause)
  }

  forgetWorker(worker: string): void {
    this.#hands.delete(worker)
  }

  #openHand(worker: string): InHand {
    const known = this.#hands.get(worker)
    if (known !== undefined) return known
    const fresh = new InHand()
    this.#hands.set(worker, fresh)
    return fresh
  }

  /** The `traceparent` an agent gets, by which its own calls find their parent. */
  traceparent(call: Ancestor): string {
    const spanId = this.#ids.spanId(call.traceId, call.callId)
    this.#spans.set(spanId, call)
    return `00-${call.otelTraceId ?? this.#ids.otelTraceId(call.traceId)}-${spanId}-01`
  }
}

/** An agent of another node calls: its node has found the place. */
function carried({ origin = LOCAL }: Caller, cause: CallCause, traceId: string | undefined): Placement {
  const { callId: parentId, depth, otelTraceId } = cause
  return { traceId, parentId, depth: depth + 1, otelTraceId, origin, cause: undefined, isOrphan: false }
}

/**
 * What a client calls is its own, whatever it names as a parent. What a worker calls is for whom its parent was; where that
 * is not known, for whoever all that it has in hand is for, or else nobody's but this machine's.
 */
function originOf(caller: Caller, parent: Ancestor | undefined, hand: InHand | undefined): Origin {
  if (caller.kind === 'client') return caller.origin ?? LOCAL
  if (parent !== undefined) return parent.origin
  let origin: Origin | undefined
  for (const call of hand?.calls() ?? []) {
    if (origin !== undefined && origin.principal !== call.origin.principal) return LOCAL
    origin =
      origin === undefined || origin.client === call.origin.client ? call.origin : { principal: origin.principal }
  }
  return origin ?? LOCAL
}

function onlyOne(calls: Iterable<Ancestor> = []): Ancestor | undefined {
  const [first, second] = calls
  return second === undefined ? first : undefined
}

/** The depth of the deepest; 0: there is none. */
function deepest(calls: Iterable<Ancestor> = []): number {
  let depth = 0
  for (const call of calls) depth = Math.max(depth, call.depth)
  return depth
}

function readTraceparent(text: unknown): { otelTraceId: string; spanId: string } | undefined {
  const parts = typeof text === 'string' ? TRACEPARENT.exec(text) : null
  return parts === null ? undefined : { otelTraceId: parts[1]!, spanId: parts[2]! }
}
