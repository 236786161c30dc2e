/**
 * The connection as agents: calls come in by name and are served by a table of methods (contract 13.18).
 *
 * ```js
 * const bus = await connect({ unix: '/run/user/1000/stdio-bus.sock' })
 * await bus.agent('greeter', {
 *   input: ({ inputs: [{ value }] }) => ({ outputs: [{ type: 'text', value: `Hello, ${value}` }] }),
 * })
 * ```
 *
 * Every call gets one answer. A bus that comes back is told the names again; what was under way then is nobody's.
 */
import { CODE, type ErrorObject } from '../wire/jsonrpc.ts'
import type { LineChannel } from './connection.ts'
import { BusRefused, ConnectionClosed } from './errors.ts'

export interface AgentCall {
  /** Without the name of the agent. */
  readonly method: string
  readonly traceId: string | undefined
  /** Aborts when nobody wants the answer any more. */
  readonly signal: AbortSignal
  /** A part of the answer, before it. */
  partial(outputs: readonly object[]): void
  /** Calls another agent, below this call in its trace. */
  ask(method: string, params?: object): Promise<unknown>
}

/** What it returns, or resolves with, is the result; what it throws is the error, with its `code` and `data` if it has a code. */
// biome-ignore lint/suspicious/noExplicitAny: what parameters are is for the method to know
export type AgentMethod = (params: any, call: AgentCall) => unknown

export interface AgentOptions {
  readonly description?: string
  readonly modalities?: readonly ('text' | 'image' | 'audio' | 'video' | 'file')[]
  readonly timeoutMs?: number
}

export interface ServedAgent {
  readonly name: string
  /** The name is free again; what is under way is answered with `agent_gone`. */
  unregister(): Promise<void>
}

type Methods = Readonly<Record<string, AgentMethod>>
type Message = Readonly<Record<string, unknown>>

interface Registration {
  readonly methods: Methods
  readonly params: Message
}

export class AgentFace {
  readonly #channel: LineChannel
  readonly #agents = new Map<string, Registration>()
  readonly #asked = new Map<string, (message: Message) => void>()
  readonly #running = new Map<unknown, AbortController>()
  #lastId = 0

  constructor(channel: LineChannel) {
    this.#channel = channel
    this.#read().catch(() => {})
  }

  async serve(name: string, methods: Methods, options: AgentOptions): Promise<ServedAgent> {
    const { description, modalities, timeoutMs } = options
    const params = { name, methods: Object.keys(methods), description, modalities, timeout_ms: timeoutMs }
    await this.#tell('bus::agents.register', params)
    this.#agents.set(name, { methods, params })
    return { name, unregister: () => this.#unregister(name) }
  }

  /** Another bus is there now: it knows none of the names. */
  restored(): void {
    for (const { abort } of this.#takeRunning()) abort.abort()
    for (const { params } of this.#agents.values())
      this.#tell('bus::agents.register', params).catch(() => this.#channel.close())
  }

  async #unregister(name: string): Promise<void> {
    await this.#tell('bus::agents.unregister', { name })
    this.#agents.delete(name)
  }

  async #read(): Promise<void> {
    try {
      for (let line = await this.#channel.take(); line !== undefined; line = await this.#channel.take())
        this.#receive(JSON.parse(line.toString('utf8')) as Message)
    } finally {
      for (const { abort } of this.#takeRunning()) abort.abort()
      const asked = [...this.#asked.values()]
      this.#asked.clear()
      for (const settle of asked)
        settle({ error: { code: CODE.internalError, message: new ConnectionClosed().message } })
    }
  }

  *#takeRunning(): Generator<{ readonly abort: AbortController }> {
    const running = [...this.#running.values()]
    this.#running.clear()
    for (const abort of running) yield { abort }
  }

  #receive(message: Message): void {
    const { id, method, params } = message
    if (method === undefined) return this.#settle(String(id), message)
    if (method === 'notifications/cancelled') {
      const { requestId } = (params ?? {}) as { requestId?: unknown }
      return this.#running.get(requestId)?.abort()
    }
    const [name, own] = splitName(String(method))
    const methods = this.#agents.get(name)?.methods ?? {}
    const run = Object.hasOwn(methods, own) ? methods[own] : undefined
    if (run !== undefined) void this.#run(run, own, message)
    else if (id !== undefined)
      this.#say({ id, error: { code: CODE.methodNotFound, message: `There is no ${own} here` } })
  }

  #settle(id: string, message: Message): void {
    const settle = this.#asked.get(id)
    this.#asked.delete(id)
    settle?.(message)
  }

  async #run(run: AgentMethod, method: string, { id, params, trace_id }: Message): Promise<void> {
    const abort = new AbortController()
    if (id !== undefined) this.#running.set(id, abort)
    const traceId = typeof trace_id === 'string' ? trace_id : undefined
    const call: AgentCall = {
      method,
      traceId,
      signal: abort.signal,
      partial: (outputs) => {
        if (id !== undefined && !abort.signal.aborted) this.#say({ id, partial: true, outputs })
      },
      ask: (other, more = {}) => this.#ask(other, { ...more, _meta: metaOf(params) }, traceId),
    }
    const outcome = await outcomeOf(() => run(params ?? {}, call))
    if (id === undefined || !this.#running.delete(id) || abort.signal.aborted) return
    this.#say({ id, ...outcome })
  }

  /** One of the bus's own methods; what it refuses is thrown. */
  async #tell(method: string, params: Message): Promise<void> {
    await this.#ask(method, params, undefined)
  }

  #ask(method: string, params: object, traceId: string | undefined): Promise<unknown> {
    const id = `agent-${++this.#lastId}`
    return new Promise((resolve, reject) => {
      this.#asked.set(id, ({ result, error }) => {
        if (error == null) resolve(result)
        else reject(refusalOf(error as ErrorObject))
      })
      this.#say({ id, method, params, ...(traceId === undefined ? {} : { trace_id: traceId }) }).catch(reject)
    })
  }

  #say(message: Message): Promise<void> {
    const said = this.#channel.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
    said.catch(() => {})
    return said
  }
}

function splitName(method: string): readonly [string, string] {
  const at = method.indexOf('::')
  return at === -1 ? ['', method] : [method.slice(0, at), method.slice(at + 2)]
}

/** What tells the bus below which call another stands. */
function metaOf(params: unknown): object {
  const { _meta: meta } = (params ?? {}) as { _meta?: { traceparent?: unknown } }
  return meta?.traceparent === undefined ? {} : { traceparent: meta.traceparent }
}

async function outcomeOf(run: () => unknown): Promise<{ result: unknown } | { error: ErrorObject }> {
  try {
    return { result: (await run()) ?? null }
  } catch (error) {
    const { code, message, data } = error as Partial<ErrorObject>
    const text = typeof message === 'string' ? message : String(error)
    if (!Number.isInteger(code)) return { error: { code: CODE.internalError, message: text } }
    return { error: { code: code as number, message: text, ...(data === undefined ? {} : { data }) } }
  }
}

function refusalOf(error: ErrorObject): BusRefused {
  const { reason = 'error', retryable } = (error.data ?? {}) as { reason?: string; retryable?: boolean }
  return new BusRefused(reason, error.message, retryable === true, error)
}
