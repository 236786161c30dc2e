/**
 * Makes traces of traffic that passes the bus unchanged: one for each ACP turn or MCP request, with tool calls and questions
 * to the client as children (aio.md 5, "trace": true).
 *
 * It is told what happens, in order, and never in the way: a line it does not understand is passed over. What it remembers
 * is open requests and questions, which the bus bounds, and a bounded number of tool calls for each turn.
 */
import type { Observed } from '../kernel/observation.ts'
import type { CallEnd, CallError, CallPartial, CallStart } from './call.ts'
import { isRecord, type JsonRecord, otelTraceOf, readLine, readOutcome, textOr } from './observed-line.ts'

export interface ObserverSink {
  begin(call: CallStart): void
  partial(partial: CallPartial): void
  end(call: CallEnd): void
}

export interface ObserverIds {
  issue(): string
  allocate(traceId: string, requestId: string | number | null): number
}

interface Place {
  readonly traceId: string
  readonly callId: number
}

interface Turn extends Place {
  /** What is the same for all calls of the trace. */
  readonly common: Pick<CallStart, 'traceId' | 'protocol' | 'type' | 'agent' | 'worker'>
  readonly sessionKey: string | undefined
  readonly tools: Map<string, Place>
}

type Event<Kind extends Observed['kind']> = Extract<Observed, { kind: Kind }>
type Take = { readonly [Kind in Observed['kind']]: (event: Event<Kind>) => void }

const MAX_TOOLS_PER_TURN = 1_000

export class TrafficObserver {
  readonly #sink: ObserverSink
  readonly #ids: ObserverIds
  readonly #nowMs: () => number
  readonly #turns = new Map<number, Turn>()
  /** The open turn of a session at a process; the newest, should there be two. */
  readonly #bySession = new Map<string, Turn>()
  readonly #questions = new Map<number, Place>()

  constructor(sink: ObserverSink, ids: ObserverIds, nowMs: () => number = Date.now) {
    this.#sink = sink
    this.#ids = ids
    this.#nowMs = nowMs
  }

  take(event: Observed): void {
    ;(this.#takes[event.kind] as (event: Observed) => void)(event)
  }

  readonly #takes: Take = {
    opened: (event) => this.#open(event),
    answered: ({ request, line }) => this.#close(request, readOutcome(readLine(line)), line.length),
    failed: ({ request, error }) => this.#close(request, { output: null, error }, 0),
    said: (event) => this.#hear(event),
    settled: ({ question, line }) => this.#settle(question, line),
  }

  #open({ request, pool, protocol, line, ...process }: Event<'opened'>): void {
    const message = readLine(line)
    const params = isRecord(message['params']) ? message['params'] : {}
    const { id } = message
    const requestId = typeof id === 'string' || typeof id === 'number' ? id : null
    const traceId = this.#ids.issue()
    const worker = `${process.worker}.${process.generation}`
    const common = { traceId, protocol, type: protocol === 'mcp' ? 'mcp' : 'stdio', agent: pool, worker } as const
    const sessionKey = typeof params['sessionId'] === 'string' ? `${worker}\n${params['sessionId']}` : undefined
    const turn: Turn = { traceId, callId: this.#ids.allocate(traceId, null), common, sessionKey, tools: new Map() }
    this.#turns.set(request, turn)
    if (sessionKey !== undefined) this.#bySession.set(sessionKey, turn)
    const otelTraceId = otelTraceOf(params)
    this.#sink.begin({
      ...common,
      callId: turn.callId,
      parentId: null,
      requestId,
      method: textOr(message['method'], ''),
      input: params,
      bytesIn: line.length,
      startedAtMs: this.#nowMs(),
      ...targetOf(params['name']),
      ...(otelTraceId === undefined ? {} : { otelTraceId }),
    })
  }

  #close(request: number, { output, error }: { output: unknown; error?: CallError }, bytes: number): void {
    const turn = this.#turns.get(request)
    if (turn === undefined) return
    this.#turns.delete(request)
    if (turn.sessionKey !== undefined && this.#bySession.get(turn.sessionKey) === turn)
      this.#bySession.delete(turn.sessionKey)
    const hasEnded = error === undefined && (!isRecord(output) || output['stopReason'] !== 'cancelled')
    const left = hasEnded ? undefined : { message: 'The turn ended before the tool call did.', type: 'cancelled' }
    for (const tool of turn.tools.values()) this.#end(tool, null, left, 0)
    this.#end(turn, output, error, bytes)
  }

  // ---- what a worker says meanwhile ----

  #hear(event: Event<'said'>): void {
    const { question, request, line } = event
    const message = readLine(line)
    const params = isRecord(message['params']) ? message['params'] : {}
    const sessionId = params['sessionId']
    const turn =
      request === undefined
        ? this.#bySession.get(`${event.worker}.${event.generation}\n${textOr(sessionId, '')}`)
        : this.#turns.get(request)
    if (turn === undefined) return
    if (question !== undefined) return this.#ask(turn, question, message, params, line.length)
    const update = isRecord(params['update']) ? params['update'] : {}
    if (typeof update['toolCallId'] === 'string') this.#follow(turn, update, line.length)
    else this.#sink.partial({ traceId: turn.traceId, callId: turn.callId, atMs: this.#nowMs() })
  }

  /** A question to the client is a call of its own, below the tool call it is about. */
  #ask(turn: Turn, question: number, message: JsonRecord, params: JsonRecord, bytes: number): void {
    const tool = isRecord(params['toolCall']) ? params['toolCall'] : {}
    const parent = turn.tools.get(textOr(tool['toolCallId'], '')) ?? turn
    const method = textOr(message['method'], '')
    this.#questions.set(question, this.#begin(turn, parent, method, textOr(tool['title'], ''), params, bytes))
  }

  #settle(question: number, line: Buffer | undefined): void {
    const asked = this.#questions.get(question)
    if (asked === undefined) return
    this.#questions.delete(question)
    const gone = { output: null, error: { message: 'Nobody was there to answer.', type: 'client_gone' } }
    const { output, error } = line === undefined ? gone : readOutcome(readLine(line))
    this.#end(asked, output, error, line?.length ?? 0)
  }

  /** A tool call begins with its first update and ends when one says so; some agents send a single update for both. */
  #follow(turn: Turn, update: JsonRecord, bytes: number): void {
    const toolCallId = update['toolCallId'] as string
    const { status, title, kind, rawInput, locations } = update
    let tool = turn.tools.get(toolCallId)
    if (tool === undefined) {
      if (turn.tools.size >= MAX_TOOLS_PER_TURN || update['sessionUpdate'] !== 'tool_call') return
      const input = rawInput ?? { title, kind, locations }
      tool = this.#begin(turn, turn, 'tool_call', textOr(title, toolCallId), input, bytes)
      turn.tools.set(toolCallId, tool)
    }
    if (status !== 'completed' && status !== 'failed') return
    turn.tools.delete(toolCallId)
    const failure = { message: 'The tool call failed.', type: 'tool_error' }
    this.#end(tool, update['rawOutput'] ?? update['content'] ?? null, status === 'failed' ? failure : undefined, bytes)
  }

  #begin(turn: Turn, parent: Place, method: string, target: string, input: unknown, bytes: number): Place {
    const place = { traceId: turn.traceId, callId: this.#ids.allocate(turn.traceId, null) }
    this.#sink.begin({
      ...turn.common,
      callId: place.callId,
      parentId: parent.callId,
      requestId: null,
      method,
      input,
      bytesIn: bytes,
      startedAtMs: this.#nowMs(),
      ...targetOf(target),
    })
    return place
  }

  #end({ traceId, callId }: Place, output: unknown, error: CallError | undefined, bytes: number): void {
    const end = { traceId, callId, output, bytesOut: bytes, partials: 0, endedAtMs: this.#nowMs() }
    this.#sink.end(error === undefined ? { ...end, status: 'ok' } : { ...end, status: 'error', error })
  }
}

function targetOf(name: unknown): { target?: string } {
  return typeof name === 'string' && name !== '' ? { target: name } : {}
}
