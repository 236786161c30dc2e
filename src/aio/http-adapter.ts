/**
 * Agents behind an HTTP endpoint: the seed's envelope is POSTed, the answer is JSON or an event stream.
 *
 * A JSON-RPC body is the answer whatever the status. Nothing is sent twice: what failed after it may have been sent is
 * told, not retried. Redirects stay on the configured origin. Answers are bounded before they are parsed, and cleaned of the
 * secrets that were sent with the question.
 */
import { Agent, fetch, type Response } from 'undici'
import { type Adapter, agentMessage, type Invocation, type Outcome } from './adapter.ts'
import type { HttpAgent } from './agent-spec.ts'
import { isAnswer, readAnswer, readPartial } from './answers.ts'
import { type ReadJson, readerFor } from './echoed-secrets.ts'
import { fault } from './faults.ts'
import { isEventStream, type Overlong, readEvents, readText } from './http-body.ts'
import { isObject, type JsonObject } from './json-object.ts'
import type { Turns } from './turns.ts'

const MAX_REDIRECTS = 5
const MAX_CONNECTIONS = 128

/** What all HTTP agents of a gateway share. */
export class HttpWays {
  readonly turns: Turns
  /** Timeouts are the caller's: a slow model is not a broken one. */
  readonly dispatcher = new Agent({
    connections: MAX_CONNECTIONS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 10_000 },
  })

  constructor(turns: Turns) {
    this.turns = turns
  }
}

let lastId = 0

export function httpAdapter(spec: HttpAgent, http: HttpWays): Adapter {
  const agent = { ...spec, readJson: readerFor(spec) }
  return (invocation, outcome) => {
    const abort = new AbortController()
    const call = new HttpCall(agent, outcome, http, abort.signal)
    call.run(invocation).catch((error) => outcome.broke(error))
    return () => abort.abort()
  }
}

type ReadableAgent = HttpAgent & { readonly readJson: ReadJson }

class HttpCall {
  readonly #agent: ReadableAgent
  readonly #outcome: Outcome
  readonly #http: HttpWays
  readonly #signal: AbortSignal

  constructor(agent: ReadableAgent, outcome: Outcome, http: HttpWays, signal: AbortSignal) {
    this.#agent = agent
    this.#outcome = outcome
    this.#http = http
    this.#signal = signal
  }

  async run(invocation: Invocation): Promise<void> {
    this.#outcome.sent(null)
    const response = await this.#exchange(invocation)
    if (response === undefined) return
    try {
      await (isEventStream(response) ? this.#readStream(response) : this.#readWhole(response))
    } catch (error) {
      this.#invalid(response.status, `it was cut short (${causeOf(error)})`)
    }
  }

  /** The answer after redirects; undefined: the failure has been told. */
  async #exchange(invocation: Invocation): Promise<Response | undefined> {
    const body = JSON.stringify({ ...agentMessage(invocation), id: ++lastId })
    const headers = {
      ...this.#agent.headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      traceparent: invocation.traceparent,
    }
    let url = new URL(this.#agent.endpoint)
    try {
      for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
        const { dispatcher } = this.#http
        const options = { headers, redirect: 'manual', signal: this.#signal, dispatcher } as const
        const response = await fetch(url, { method: 'POST', body, ...options })
        const location = redirectOf(response)
        if (location === undefined) return response
        await response.body?.cancel()
        if (!URL.canParse(location, url.href)) break
        url = new URL(location, url)
        if (url.origin !== new URL(this.#agent.endpoint).origin) break
      }
      this.#outcome.fail(fault('agent_redirect', { agent: this.#agent.name }))
    } catch (error) {
      this.#outcome.fail(fault('agent_unreachable', { agent: this.#agent.name, cause: causeOf(error) }))
    }
    return undefined
  }

  async #readWhole(response: Response): Promise<void> {
    const text = await readText(response, this.#agent.maxReplyBytes)
    if (typeof text !== 'string') return this.#overlong(response.status, text)
    const value = this.#agent.readJson(text)
    if (value === undefined) return this.#invalid(response.status, 'it is not JSON')
    if (isOwnMessage(value.json)) return this.#invalid(response.status, 'it is a question')
    this.#answer(response, value.json, Buffer.byteLength(text))
  }

  #answer(response: Response, json: unknown, bytes: number): void {
    const answer = isObject(json) && isAnswer(json) ? readAnswer(json) : undefined
    if (answer !== undefined) this.#outcome.settle(answer, { bytes, raw: json })
    else if (response.ok) this.#outcome.settle({ result: json }, { bytes, raw: json })
    else this.#outcome.fail(fault('agent_http_error', { agent: this.#agent.name, http_status: response.status }))
  }

  /** Ends with the first event that is not a partial; what follows it is not read. */
  async #readStream(response: Response): Promise<void> {
    for await (const event of readEvents(response, this.#agent.maxReplyBytes, this.#http.turns)) {
      if (typeof event !== 'string') return this.#overlong(response.status, event)
      const value = this.#agent.readJson(event)
      if (value === undefined) return this.#invalid(response.status, 'an event is not JSON')
      if (isOwnMessage(value.json)) continue
      const partial = isObject(value.json) ? readPartial(value.json) : undefined
      if (partial === undefined) return this.#answer(response, value.json, Buffer.byteLength(event))
      this.#outcome.partial(partial)
      await this.#outcome.room()
    }
    this.#invalid(response.status, 'the stream ended without a final answer')
  }

  #overlong(httpStatus: number, overlong: Overlong): void {
    this.#invalid(httpStatus, `it is longer than ${overlong.limitBytes} bytes`)
  }

  #invalid(httpStatus: number, cause: string): void {
    this.#outcome.fail(fault('agent_invalid_response', { agent: this.#agent.name, cause, http_status: httpStatus }))
  }
}

/** A question or a note of the agent's own, to which nobody can reply here: never an answer, whatever its id. */
function isOwnMessage(json: unknown): boolean {
  return isObject(json) && json['jsonrpc'] !== undefined && typeof json['method'] === 'string' && !isAnswer(json)
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308])

/** 303 points at a page about the answer, which is not the answer: it is a status like any other. */
function redirectOf(response: Response): string | undefined {
  return REDIRECTS.has(response.status) ? (response.headers.get('location') ?? undefined) : undefined
}

/** The code of the system, which holds no secret; messages of the network may name what a header held. */
function causeOf(error: unknown): string {
  const cause = (error as { cause?: JsonObject })?.cause
  const code = cause?.['code'] ?? (error as { code?: unknown })?.code
  if (cause?.['message'] === 'bad port') return 'its port is one of those that HTTP clients refuse'
  return typeof code === 'string' ? code : 'the connection failed'
}
