/** Writes a file of traces as a bus before would have: by the store itself, whose thread runs what was built. */
import type { TraceStore } from '../../src/trace/store.ts'

export interface ToldCall {
  readonly agent: string
  readonly method: string
  readonly target?: string
  /** The number of the call that called it; the first is 1. */
  readonly parent?: number
  /** After the beginning of the trace. */
  readonly atMs?: number
  readonly tookMs?: number
  readonly isError?: boolean
  readonly isOpen?: boolean
  readonly input?: unknown
  readonly output?: unknown
}

export interface Told {
  readonly id: string
  readonly calls: readonly ToldCall[]
  readonly principal?: string
  readonly startedAtMs?: number
}

const STORE = new URL('../../dist/trace/store.js', import.meta.url).href
/** So much is told at a time: the queue of the store is bounded. */
const PORTION = 500

export async function tellTraces(path: string, traces: readonly Told[], options: object = {}): Promise<void> {
  const { openTraceStore } = (await import(STORE)) as { openTraceStore(options: object): Promise<TraceStore> }
  const store = await openTraceStore({ path, redact: ['password'], ...options })
  let told = 0
  for (const trace of traces) {
    for (const number of trace.calls.keys()) {
      tellCall(store, trace, number)
      if (++told % PORTION === 0) await store.query('list', { limit: 1 })
    }
  }
  await store.close()
}

function tellCall(store: TraceStore, trace: Told, index: number): void {
  const {
    agent,
    method,
    target,
    parent,
    atMs = index,
    tookMs = 10,
    isError,
    isOpen,
    input,
    output,
  } = trace.calls[index]!
  const startedAtMs = (trace.startedAtMs ?? Date.now()) + atMs
  const { id: traceId, principal } = trace
  const callId = index + 1
  store.begin({
    ...{ traceId, callId, parentId: parent ?? null, requestId: callId, protocol: 'aio', type: 'mcp' },
    ...{ agent, method, target, worker: '1.1', input: input ?? { x: index }, bytesIn: 9, startedAtMs },
    ...(principal === undefined ? {} : { caller: { kind: 'client', principal, client: 1 } }),
  })
  if (isOpen) return
  const error = isError
    ? { code: -32602, message: `Tool ${target}: "x" must be a number`, data: { reason: 'bad' } }
    : undefined
  const status = isError ? 'error' : 'ok'
  store.end({
    traceId,
    callId,
    status,
    error,
    output: output ?? { y: index },
    bytesOut: 9,
    partials: 0,
    endedAtMs: startedAtMs + tookMs,
  })
}
