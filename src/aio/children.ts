/**
 * Steps of a call that are calls in the trace: what a policy decided, what a model was asked (contract 13.15, 13.16).
 *
 * A step has its place below its call, so that what it leads to stands below it and every chain reaches its bound. It ends
 * once.
 */
import type { ChildStart, OpenChild } from './adapter.ts'
import { type Ancestor, callKey, MAX_DEPTH, type Parents } from './parents.ts'
import type { CallError, TraceIds, TraceSink } from './port.ts'

export interface ChildrenHost {
  readonly ids: TraceIds
  readonly traces: TraceSink
  readonly parents: Parents
  nowMs(): number
  /** Nobody wants any more what this worker has called for the step. */
  letGo(worker: string, place: Ancestor): void
}

/** `agent`: whose call it is a step of. */
export function openChild(host: ChildrenHost, parent: Ancestor, agent: string, start: ChildStart): OpenChild {
  const { ids, traces, parents } = host
  const { traceId, otelTraceId, origin } = parent
  const place: Ancestor = {
    traceId,
    callId: ids.allocate(traceId, null),
    depth: parent.depth + 1,
    otelTraceId,
    origin,
  }
  parents.remember(place)
  traces.begin({
    traceId,
    callId: place.callId,
    parentId: parent.callId,
    requestId: null,
    protocol: start.protocol,
    type: 'stdio',
    agent: start.agent,
    worker: null,
    method: start.method,
    input: start.input,
    bytesIn: 0,
    startedAtMs: host.nowMs(),
    caller: { kind: 'agent', ...origin, agent },
    ...(otelTraceId === undefined ? {} : { otelTraceId }),
  })
  return new Child(host, place, start.agent)
}

class Child implements OpenChild {
  readonly #host: ChildrenHost
  readonly #place: Ancestor
  readonly #agent: string
  #worker: string | null = null
  #isOpen = true

  constructor(host: ChildrenHost, place: Ancestor, agent: string) {
    this.#host = host
    this.#place = place
    this.#agent = agent
  }

  get isTooDeep(): boolean {
    return this.#place.depth > MAX_DEPTH
  }

  get meta() {
    const { traceId } = this.#place
    const traceparent = this.#host.parents.traceparent(this.#place)
    return { traceparent, 'stdio-bus/trace_id': traceId, 'stdio-bus/call_id': callKey(this.#place) }
  }

  sent(worker: string | null): void {
    if (worker === null || !this.#isOpen) return
    this.#worker = worker
    this.#host.parents.opened(worker, this.#place)
  }

  child(start: ChildStart): OpenChild {
    return openChild(this.#host, this.#place, this.#agent, start)
  }

  giveUp(error: CallError): void {
    this.#place.isGivenUp = true
    this.end(null, error)
  }

  end(output: unknown, error?: CallError): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const { traceId, callId } = this.#place
    const endedAtMs = this.#host.nowMs()
    const how = error === undefined ? ({ status: 'ok' } as const) : ({ status: 'error', error } as const)
    const where = this.#worker === null ? {} : { worker: this.#worker }
    this.#host.traces.end({ traceId, callId, ...how, output, bytesOut: 0, partials: 0, endedAtMs, ...where })
    if (this.#worker !== null) this.#host.letGo(this.#worker, this.#place)
  }
}
