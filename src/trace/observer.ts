/**
 * Makes traces of traffic that passes the bus unchanged: one for each ACP turn or MCP request, with tool calls and questions
 * to the client as children (spec T9).
 *
 * It is told what happens, in order, and never in the way: a line it does not understand is passed over. What it remembers
 * is open requests and questions, which the bus bounds, a bounded number of tool calls for each turn, and a bounded amount of
 * what agents have said in turns that are open.
 */
import type { Observed } from '../kernel/observation.ts'
import { JsonText } from '../wire/ready-json.ts'
import { type AnswerBudget, AnswerText } from './answer-text.ts'
import type { CallCaller, CallEnd, CallError, CallPartial, CallStart } from './call.ts'
import {
  isRecord,
  type JsonRecord,
  otelTraceOf,
  readAnswer,
  readOutcome,
  readParams,
  readShort,
  textOr,
} from './observed-line.ts'

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

/** The call at the top of a trace, and what its children have from it. */
interface Turn extends Place, Pick<CallStart, 'protocol' | 'type' | 'agent' | 'worker'> {
  /** Of what its agent does for it. */
  readonly caller: CallCaller
  readonly sessionKey: string | undefined
  /** Tool calls that are not over. */
  tools: Map<string, Place> | undefined
  /** What the agent has said so far. */
  answer: AnswerText | undefined
}

type Event<Kind extends Observed['kind']> = Extract<Observed, { kind: Kind }>
type Take = { readonly [Kind in Observed['kind']]: (event: Event<Kind>) => void }

const MAX_TOOLS_PER_TURN = 1_000
/** Of all answers that are being given. */
const MAX_HELD_CHARS = 16 * 1024 * 1024

export class TrafficObserver {
  readonly #sink: ObserverSink
  readonly #ids: ObserverIds
  readonly #nowMs: () => number
  readonly #turns = new Map<number, Turn>()
  /** The open turn of a session at a process; the newest, should there be two. */
  readonly #bySession = new Map<string, Turn>()
  readonly #questions = new Map<number, Place>()
  readonly #budget: AnswerBudget

  /** Of an answer no more than `payloadBytes` is kept, as of every payload. */
  constructor(sink: ObserverSink, ids: ObserverIds, payloadBytes: number, nowMs: () => number = Date.now) {
    this.#sink = sink
    this.#ids = ids
    this.#nowMs = nowMs
    this.#budget = { perAnswer: payloadBytes, left: MAX_HELD_CHARS }
  }

  take(event: Observed): void {
    ;(this.#takes[event.kind] as (event: Observed) => void)(event)
  }

  /** Of a request that has begun and not ended. */
  traceOf(request: number): string | undefined {
    return this.#turns.get(request)?.traceId
  }

  readonly #takes: Take = {
    opened: (event) => this.#open(event),
    answered: ({ request, line, body }) => this.#close(request, readAnswer(line, body), line.length),
    failed: ({ request, error }) => this.#close(request, { output: null, error }, 0),
    said: (event) => this.#hear(event),
    settled: ({ question, line }) => this.#settle(question, line),
  }

  #open(event: Event<'opened'>): void {
    const { request, client, principal, pool, protocol, method, session, line, body } = event
    const params = readParams(line)
    const traceId = this.#ids.issue()
    const worker = `${event.worker}.${event.generation}`
    const type = protocol === 'mcp' ? 'mcp' : 'stdio'
    const sessionKey = session === undefined ? undefined : `${worker}\n${session}`
    const callId = this.#ids.allocate(traceId, null)
    const caller = { kind: 'agent', principal, client, agent: pool } as const
    const what = { protocol, type, agent: pool, worker, caller, sessionKey } as const
    const turn: Turn = { traceId, callId, ...what, tools: undefined, answer: undefined }
    this.#turns.set(request, turn)
    if (sessionKey !== undefined) this.#bySession.set(sessionKey, turn)
    this.#sink.begin({
      traceId,
      callId,
      parentId: null,
      requestId: event.id,
      protocol,
      type,
      agent: pool,
      worker,
      method,
      target: textOr(params['name'], '') || undefined,
      input: body === undefined ? {} : new JsonText(body.toString()),
      bytesIn: line.length,
      startedAtMs: this.#nowMs(),
      caller: { kind: 'client', principal, client },
      otelTraceId: otelTraceOf(params),
    })
  }

  #close(request: number, { output, error }: { output: unknown; error?: CallError }, bytes: number): void {
    const turn = this.#turns.get(request)
    if (turn === undefined) return
    this.#turns.delete(request)
    if (turn.sessionKey !== undefined && this.#bySession.get(turn.sessionKey) === turn)
      this.#bySession.delete(turn.sessionKey)
    const isWhole = error === undefined && !isCancelled(output)
    const left = isWhole ? undefined : { message: 'The turn ended before the tool call did.', type: 'cancelled' }
    for (const tool of turn.tools?.values() ?? []) this.#end(tool, null, left, 0)
    this.#end(turn, turn.answer?.joinTo(output) ?? output, error, bytes)
  }

  // ---- what a worker says meanwhile ----

  #hear(event: Event<'said'>): void {
    const { question, request, session, line } = event
    const turn =
      request === undefined
        ? this.#bySession.get(`${event.worker}.${event.generation}\n${session}`)
        : this.#turns.get(request)
    if (turn === undefined) return
    const message = readShort(line)
    const params = isRecord(message['params']) ? message['params'] : {}
    if (question !== undefined) return this.#ask(turn, question, message, params, line.length)
    const update = isRecord(params['update']) ? params['update'] : {}
    if (typeof update['toolCallId'] === 'string') return this.#follow(turn, update, line.length)
    this.#sink.partial({ traceId: turn.traceId, callId: turn.callId, atMs: this.#nowMs() })
    if (update['sessionUpdate'] !== 'agent_message_chunk') return
    turn.answer ??= new AnswerText(this.#budget)
    turn.answer.add(update['content'])
  }

  /** A question to the client is a call of its own, below the tool call it is about. */
  #ask(turn: Turn, question: number, message: JsonRecord, params: JsonRecord, bytes: number): void {
    const tool = isRecord(params['toolCall']) ? params['toolCall'] : {}
    const parent = turn.tools?.get(textOr(tool['toolCallId'], '')) ?? turn
    const method = textOr(message['method'], '')
    const id = textOr(message['id'], '') || null
    const place = this.#begin(turn, parent, id, method, textOr(tool['title'], ''), params, bytes)
    this.#questions.set(question, place)
  }

  #settle(question: number, line: Buffer | undefined): void {
    const asked = this.#questions.get(question)
    if (asked === undefined) return
    this.#questions.delete(question)
    const gone = { output: null, error: { message: 'Nobody was there to answer.', type: 'client_gone' } }
    const { output, error } = line === undefined ? gone : readOutcome(readShort(line))
    this.#end(asked, output, error, line?.length ?? 0)
  }

  /** A tool call begins with its first update and ends when one says so; some agents send a single update for both. */
  #follow(turn: Turn, update: JsonRecord, bytes: number): void {
    const toolCallId = update['toolCallId'] as string
    const { status, title, kind, rawInput, locations } = update
    turn.tools ??= new Map()
    let tool = turn.tools.get(toolCallId)
    if (tool === undefined) {
      if (turn.tools.size >= MAX_TOOLS_PER_TURN || update['sessionUpdate'] !== 'tool_call') return
      const input = rawInput ?? { title, kind, locations }
      tool = this.#begin(turn, turn, toolCallId, 'tool_call', textOr(title, toolCallId), input, bytes)
      turn.tools.set(toolCallId, tool)
    }
    if (status !== 'completed' && status !== 'failed') return
    turn.tools.delete(toolCallId)
    const failure = { message: 'The tool call failed.', type: 'tool_error' }
    this.#end(tool, update['rawOutput'] ?? update['content'] ?? null, status === 'failed' ? failure : undefined, bytes)
  }

  #begin(
    turn: Turn,
    parent: Place,
    requestId: string | null,
    method: string,
    target: string,
    input: unknown,
    bytes: number,
  ): Place {
    const { traceId, protocol, type, agent, worker, caller } = turn
    const callId = this.#ids.allocate(traceId, null)
    this.#sink.begin({
      traceId,
      callId,
      parentId: parent.callId,
      requestId,
      protocol,
      type,
      agent,
      worker,
      method,
      target: target || undefined,
      input,
      bytesIn: bytes,
      startedAtMs: this.#nowMs(),
      caller,
    })
    return { traceId, callId }
  }

  #end({ traceId, callId }: Place, output: unknown, error: CallError | undefined, bytes: number): void {
    const status = error === undefined ? 'ok' : 'error'
    const endedAtMs = this.#nowMs()
    this.#sink.end({ traceId, callId, status, error, output, bytesOut: bytes, partials: 0, endedAtMs })
  }
}

function isCancelled(output: unknown): boolean {
  return output instanceof JsonText && output.text.includes('"cancelled"')
}
