/**
 * The agent behind the protocol: what each ACP method does to sessions, store and endpoint.
 *
 * It owns no pipe and no process signal. Invariant: a method that names a session nobody knows is answered with -32002,
 * and changes nothing.
 */
import {
  type AgentContext,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type McpServer,
  type NewSessionRequest,
  type NewSessionResponse,
  type PromptRequest,
  type PromptResponse,
  RequestError,
  type SessionConfigOption,
  type SetSessionConfigOptionRequest,
} from '@agentclientprotocol/sdk'
import type { Dispatcher } from 'undici'
import { toAudience } from './audience.ts'
import { Completions } from './completions.ts'
import type { Config } from './config.ts'
import { toUserContent } from './content.ts'
import { reasonOf } from './errors.ts'
import type { Message } from './history.ts'
import type { Log } from './log.ts'
import { connectMcpServer } from './mcp-server.ts'
import { Models, modelOptionId, toConfigOptions } from './models.ts'
import { replay } from './replay.ts'
import type { SessionStore } from './session-store.ts'
import { Session, Sessions } from './sessions.ts'
import { openToolbox } from './toolbox.ts'
import { runTurn } from './turn.ts'
import { readWishes } from './wishes.ts'

export interface AgentParts {
  readonly config: Config
  readonly dispatcher: Dispatcher
  readonly store: SessionStore | undefined
  readonly log: Log
  readonly version: string
}

/** Servers started through a package runner may have to be downloaded first. */
const connectTimeoutMs = 60_000

export class OpenAiAgent {
  readonly config: Config
  readonly version: string
  readonly #log: Log
  readonly #store: SessionStore | undefined
  readonly #completions: Completions
  readonly #models: Models
  readonly #sessions = new Sessions()

  constructor(parts: AgentParts) {
    this.config = parts.config
    this.version = parts.version
    this.#log = parts.log
    this.#store = parts.store
    this.#completions = new Completions(parts.config, parts.dispatcher)
    this.#models = new Models(parts.config, parts.dispatcher)
  }

  async newSession(params: NewSessionRequest): Promise<NewSessionResponse> {
    const session = new Session({ cwd: params.cwd, model: this.config.model })
    const [options] = await Promise.all([
      this.#options(session),
      this.#store?.create(session.id, session.cwd, session.model),
    ])
    this.#open(session, params.cwd, params.mcpServers)
    return { sessionId: session.id, ...options }
  }

  async prompt(params: PromptRequest, client: AgentContext, signal: AbortSignal): Promise<PromptResponse> {
    const session = this.#need(params.sessionId)
    if (session.turn) {
      const data = { reason: 'busy', sessionId: session.id }
      throw new RequestError(-32600, 'This session is already running a prompt; wait for it or cancel it.', data)
    }
    const audience = toAudience(client, session.id)
    const keep = (messages: readonly Message[]) => this.#keep(session, messages)
    const context = { config: this.config, completions: this.#completions, models: this.#models, log: this.#log }
    const content = toUserContent(params.prompt, this.config.vision)
    const stopReason = await session.run(signal, (cancel) =>
      runTurn({ ...context, session, audience, keep, wishes: readWishes(params._meta) }, content, cancel),
    )
    return { stopReason }
  }

  cancel(sessionId: string): void {
    this.#sessions.get(sessionId)?.cancel()
  }

  /** Shows the history again, then answers. */
  async load(params: { sessionId: string; cwd: string; mcpServers: McpServer[] }, client: AgentContext) {
    const session = await this.#revive(params.sessionId, params.cwd, params.mcpServers)
    const audience = toAudience(client, session.id)
    for (const update of replay(session.history)) await audience.update(update)
    return this.#options(session)
  }

  async resume(params: { sessionId: string; cwd: string; mcpServers?: McpServer[] | null }) {
    return this.#options(await this.#revive(params.sessionId, params.cwd, params.mcpServers ?? []))
  }

  async list(params: ListSessionsRequest): Promise<ListSessionsResponse> {
    return this.#needStore('session/list').list(params.cwd ?? undefined, params.cursor ?? undefined)
  }

  async close(sessionId: string): Promise<void> {
    await this.#end(this.#need(sessionId))
  }

  /** Also when there is nothing to delete: the end is the same. */
  async delete(sessionId: string): Promise<void> {
    const store = this.#needStore('session/delete')
    const session = this.#sessions.get(sessionId)
    if (session) await this.#end(session)
    await store.remove(sessionId)
  }

  async setConfigOption(params: SetSessionConfigOptionRequest): Promise<{ configOptions: SessionConfigOption[] }> {
    const session = this.#need(params.sessionId)
    const models = params.configId === modelOptionId ? await this.#models.list() : []
    const value = String(params.value)
    if (models.length === 0) throw RequestError.invalidParams({ configId: 'there is no such option' })
    if (value !== session.model && !models.some((model) => model.id === value)) {
      throw RequestError.invalidParams({ value: 'the endpoint does not list this model' })
    }
    session.model = value
    await this.#orLog(this.#store?.chooseModel(session.id, value))
    return { configOptions: toConfigOptions(models, value) }
  }

  /** Cancels every turn; new ones may still come. */
  cancelAll(): void {
    for (const session of this.#sessions.all()) session.cancel()
  }

  /** Ends every session and its servers. */
  async closeAll(): Promise<void> {
    await Promise.all(this.#sessions.all().map((session) => this.#end(session)))
  }

  /** Refuses as unknown what exists only with a store. */
  #needStore(method: string): SessionStore {
    if (!this.#store) throw RequestError.methodNotFound(method)
    return this.#store
  }

  #need(sessionId: string): Session {
    const session = this.#sessions.get(sessionId)
    if (!session) throw RequestError.sessionNotFound(sessionId)
    return session
  }

  async #revive(sessionId: string, cwd: string, servers: readonly McpServer[]): Promise<Session> {
    const store = this.#needStore('session/load')
    const live = this.#sessions.get(sessionId)
    if (live) return live
    const stored = await store.read(sessionId)
    if (!stored) throw RequestError.sessionNotFound(sessionId)
    // Somebody else may have been quicker.
    const revived = this.#sessions.get(sessionId)
    if (revived) return revived
    const session = new Session(stored)
    this.#open(session, cwd, servers)
    return session
  }

  #open(session: Session, cwd: string, servers: readonly McpServer[]): void {
    const gone = this.#sessions.add(session)
    if (gone) {
      this.#log('too many sessions: the one that was idle for longest is closed')
      void this.#end(gone)
    }
    if (servers.length === 0) return
    const { signal } = session.ending
    const options = { cwd, version: this.version, connectTimeoutMs, callTimeoutMs: this.config.timeoutMs, signal }
    session.toolbox = openToolbox(servers, options, connectMcpServer)
    void session.toolbox.then(({ lost }) => {
      if (signal.aborted) return
      for (const { name, reason } of lost) this.#log(`MCP server ${JSON.stringify(name)} is not available: ${reason}`)
    })
  }

  /** The session is unknown at once; then its turn and its servers end. */
  async #end(session: Session): Promise<void> {
    this.#sessions.remove(session.id)
    session.cancel()
    session.ending.abort()
    await session.turn?.ended
    // The answer of the turn leaves before the answer to whoever ended the session.
    await new Promise((resolve) => setImmediate(resolve))
    await (await session.toolbox).close()
  }

  async #options(session: Session): Promise<{ configOptions?: SessionConfigOption[] }> {
    const configOptions = toConfigOptions(await this.#models.list(), session.model)
    return configOptions.length === 0 ? {} : { configOptions }
  }

  async #keep(session: Session, messages: readonly Message[]): Promise<void> {
    const isFirst = session.history.length === messages.length
    await this.#orLog(this.#store?.remember(session.id, messages, isFirst))
  }

  /** A full disk must not end a conversation. */
  async #orLog(written: Promise<void> | undefined): Promise<void> {
    await written?.catch((error: unknown) => this.#log(`cannot keep the session: ${reasonOf(error, (text) => text)}`))
  }
}
