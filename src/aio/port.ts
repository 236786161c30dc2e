/**
 * What the gateway needs from the rest of the bus, as interfaces, and nothing else: no behaviour lives here.
 *
 * The gateway knows neither the kernel nor the trace store. Whoever assembles the bus implements these; a test
 * implements them with an array and a child process. Types that the trace room also declares are equal to its own.
 */
export interface ErrorBody {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** Whose a call is in the end: the principal and the connection at its root. */
export interface Origin {
  readonly principal: string
  readonly client?: number
}

/** What a caller may use, by name; whoever knows the principals answers. */
export interface Permissions {
  /** Some tools or methods may be hidden: what is no proper name then is hidden too. */
  readonly areToolsJudged: boolean
  /**
   * What every question about traces is narrowed by: parameters that replace those of the caller. Left out: it is asked as
   * anybody, which the door and the configuration decide.
   */
  readonly traceScope?: Readonly<Record<string, unknown>>
  mayUseAgent(agent: string): boolean
  /** A program of this caller may be an agent by this name. */
  mayRegister?(agent: string): boolean
  /** Methods of agents that are programs are their tools. */
  mayUseTool(agent: string, tool: string): boolean
}

/** The call for which an agent makes another, as it goes along to the node of that one (contract 14.10). */
export interface CallCause {
  readonly callId: number | null
  readonly depth: number
  readonly agent?: string
  readonly otelTraceId?: string
}

/** Who asked: a client connection or a worker process (slot.generation). */
export interface Caller {
  readonly kind: 'client' | 'worker'
  readonly key: string
  /** Of a client; left out: whoever is on this machine. */
  readonly origin?: Origin
  /** Of a client; left out: it may use everything. What agents call in turn is not judged again. */
  readonly permissions?: Permissions
  /** Its door lets in this machine's own programs only. */
  readonly isLocal?: boolean
  readonly pool?: string
  /** Of a client that is an agent of another node. */
  readonly cause?: CallCause
}

export interface Exchange {
  /** Nobody waits any more: the worker is told in its own dialect (MCP: notifications/cancelled). */
  cancel(): void
}

/** Nothing but `sent` and `failed` is called before `request` has returned, and nothing after `failed` or `finish`. */
export interface ExchangeListener {
  /** Written to that worker (slot.generation; null: no process of ours): the timer of the call starts here. */
  sent(worker: string | null): void
  /**
   * Anything the worker says for this request: its answer, which may hold `output` or `outputs` instead of `result`;
   * a partial; an MCP progress notification with the token of the request. `bytes` is the length of its line.
   */
  received(message: Record<string, unknown>, bytes?: number): void
  /** A fault of the bus: worker_exited, no_worker, overloaded and the like. */
  failed(error: ErrorBody): void
  /**
   * The worker asks something during the call. What it returns is called when the worker, or everybody, wants no answer any
   * more; undefined: nobody here answers that.
   */
  asked?(question: Asked, answer: (reply: Reply) => void): (() => void) | undefined
}

export interface Asked {
  readonly method: string
  readonly params: unknown
}

export type Reply = { readonly result: unknown } | { readonly error: ErrorBody }

export interface ExchangeOptions {
  /** Calls with one key stay on one worker. */
  readonly affinity?: string
  /** The connection at the root of the call: workers of its principal's own are for it (contract 9.22). */
  readonly client?: number
  /** The call goes to another node. */
  readonly cause?: CallCause
}

/** A client of a pool for as long as it is wanted: an agent that has sessions is spoken to by one. */
export interface Conversation {
  send(message: Readonly<Record<string, unknown>>): void
  /** What is open there is given up. */
  leave(): void
}

export interface GatewayPort {
  /**
   * `client`: the connection for which it is. `received` gets all that workers say, and the bus in their place; `worker` is
   * who said it (slot.generation), undefined the bus.
   */
  converse(
    pool: string,
    client: number | undefined,
    received: (message: Record<string, unknown>, bytes: number, worker: string | undefined) => void,
  ): Conversation
  /** From now on answers of this client are handed on, or no longer (contract 13.18). */
  serve?(caller: Caller, isServing: boolean): void
  /** One line to whoever asked; its `result` may be a `JsonText`. `traceId`: of the call that it answers. */
  reply(caller: Caller, message: Record<string, unknown>, traceId?: string): void
  /** Settles when the queue towards `caller` has room again; undefined: it has room now. */
  room?(caller: Caller): Promise<void> | undefined
  /** A request to a worker of the pool, with a bus-made id. */
  request(
    pool: string,
    message: { method: string; params?: unknown } & Record<string, unknown>,
    options: ExchangeOptions,
    listener: ExchangeListener,
  ): Exchange
  /** The last message of the exchange was received. */
  finish(exchange: Exchange): void
  /** `sent` is told which worker got it, if any did. */
  notify(
    pool: string,
    message: Record<string, unknown>,
    options: ExchangeOptions & { sent?: (worker: string) => void },
  ): void
  /** MCP pools: what the worker said to initialize or server/discover; the bus does the handshake. undefined: no worker. */
  handshake(pool: string): Promise<Record<string, unknown> | undefined>
  /** How many workers of the pool are alive. */
  workers?(pool: string): number
  nowMs(): number
  /** Calls `run` after so long, unless what it returns is called first; left out: a timer of the system. */
  after?(delayMs: number, run: () => void): () => void
}

/** A process that lives for one call; `signal` ends its whole group. */
export interface OneshotProcess {
  readonly worker: string
  readonly stdout: AsyncIterable<Uint8Array>
  /** Settles when the process has ended, also when it could not be started; never rejects. */
  readonly ended: Promise<OneshotEnd>
  /** Writes the whole input and ends stdin. */
  send(input: string): void
}

export interface OneshotEnd {
  readonly code: number | null
  readonly signal: string | null
  /** Why the process could not be started. */
  readonly startError?: string
  readonly stderrTail: string
}

/** A connection to an MCP server at a URL. */
export interface UpstreamLines {
  /** A message, without its newline. */
  send(line: string): void
  close(): void
}

/** A line of it, or why there are no more: it does not take our credentials, or it cannot be reached. */
export type UpstreamNews = { readonly line: Buffer } | { readonly lost: string; readonly isUnauthorized: boolean }

/** Fails with an error that has `why`, in words without a secret. */
export type OpenUpstream = (
  at: { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly maxMessageBytes: number },
  hear: (news: UpstreamNews) => void,
) => Promise<UpstreamLines>

/** A process for one call, on behalf of the connection `client`; left out: nobody's in particular. */
export type SpawnOneshot = (pool: string, signal: AbortSignal, client?: number) => OneshotProcess

export interface CallCaller extends Origin {
  readonly kind: 'client' | 'agent'
  /** By which a connection is an agent itself. */
  readonly name?: string
  readonly agent?: string
}

export interface CallStart {
  readonly traceId: string
  readonly callId: number
  readonly parentId: number | null
  readonly requestId: string | number | null
  readonly protocol: 'aio' | 'acp' | 'mcp'
  readonly type: 'stdio' | 'http' | 'mcp'
  readonly agent: string
  readonly worker: string | null
  readonly method: string
  readonly nativeMethod?: string
  readonly target?: string
  readonly input: unknown
  readonly bytesIn: number
  readonly startedAtMs: number
  readonly caller: CallCaller
  /** The trace id of an inbound `traceparent`, 32 hexadecimal digits. */
  readonly otelTraceId?: string
}

export interface CallError {
  readonly code?: number
  readonly message: string
  readonly data?: unknown
  readonly type?: string
}

export interface CallEnd {
  readonly traceId: string
  readonly callId: number
  readonly status: 'ok' | 'error'
  readonly error?: CallError
  readonly output: unknown
  readonly bytesOut: number
  readonly partials: number
  readonly firstPartialAtMs?: number
  readonly endedAtMs: number
  readonly worker?: string
}

export interface CallPartial {
  readonly traceId: string
  readonly callId: number
  readonly seq: number
  readonly outputs: unknown
  readonly atMs: number
}

/** Must neither throw nor wait: a call never stands still for its record. */
export interface TraceSink {
  begin(call: CallStart): void
  end(call: CallEnd): void
  partial?(partial: CallPartial): void
}

export interface TraceIds {
  /** A new id, `AIO-TR-YYYYMMDD-NNNN`. */
  issue(): string
  isValid(traceId: string): boolean
  /** The request id if it is a positive integer not yet used in the trace, otherwise the next free integer. */
  allocate(traceId: string, requestId: string | number | null): number
  /** 32 hexadecimal digits. */
  otelTraceId(traceId: string): string
  /** 16 hexadecimal digits. */
  spanId(traceId: string, callId: number): string
}

/** The result as JSON text, or what is wrong with the question. */
export type TraceAnswer = { readonly text: string } | { readonly fault: ErrorBody }

/** Checks the parameters itself; an answer sees every call whose own answer was delivered. */
export interface TraceQueries {
  query(method: 'list' | 'get' | 'stats' | 'export', params: unknown): Promise<TraceAnswer>
}
