/**
 * A conversation with one agent: a session, turns one after the other, Ctrl-C, and what happens when the agent dies.
 *
 * It reads no options and owns no terminal. A question that may have reached an agent is never put a second time.
 * Invariant: the first interrupt of a turn cancels it, the next one leaves.
 */
import {
  methods,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionInfo,
  type SessionNotification,
  type SessionUpdate,
  type StopReason,
} from '@agentclientprotocol/sdk'
import { FAILURE_MARK } from '../../agents/openai/failure-mark.ts'
import { AgentLink } from './agent-link.ts'
import { clean } from './clean.ts'
import type { Connection } from './connection.ts'
import { ChatFailure, EndpointFailure, type Lost } from './failure.ts'
import { type AskUser, answerPermission } from './permission.ts'
import type { Screen } from './screen.ts'
import { type Setting, Settings } from './settings.ts'

export interface ConversationParts {
  /** Reaches the agent, again if need be. */
  readonly connect: () => Promise<Connection>
  readonly screen: Screen
  /** Absent where nobody can be asked. */
  readonly ask: AskUser | undefined
  readonly version: string
  readonly cwd: string
}

const { session: names } = methods.agent
/** Updates of a session that came before its id. */
const MAX_EARLY = 100
const MAX_LISTED = 1_000

export class Conversation {
  readonly settings = new Settings()
  readonly #parts: ConversationParts
  #link: AgentLink | undefined
  #sessionId = ''
  #lost: Lost | undefined
  #early: SessionNotification[] | undefined
  #isReplaying = false
  #turn: 'none' | 'running' | 'cancelling' = 'none'
  /** What the agent says has failed behind it in this turn. */
  #failure: string | undefined

  constructor(parts: ConversationParts) {
    this.#parts = parts
  }

  /** What the agent calls itself. */
  get agentName(): string | undefined {
    const info = this.#link?.welcome?.agentInfo
    return info?.title ?? info?.name ?? undefined
  }

  get sessionId(): string {
    return this.#sessionId
  }

  /** What is gone since the last turn, of which the agent may not have been told. */
  get lost(): Lost | undefined {
    return this.#link?.isOver ? 'connection' : this.#lost
  }

  /** Reaches the agent, greets it and opens a session. */
  async open(): Promise<void> {
    await this.#reach()
    await this.newSession()
  }

  async newSession(): Promise<void> {
    const params = { cwd: this.#parts.cwd, mcpServers: [] }
    this.#early = []
    try {
      const created = await this.#request(names.new, params)
      this.#adopt(created.sessionId, created)
    } finally {
      this.#early = undefined
    }
  }

  /** Puts a question and shows the answer. */
  async ask(question: string, isPrompted = false): Promise<StopReason> {
    const { screen } = this.#parts
    this.#turn = 'running'
    this.#failure = undefined
    screen.beginTurn(isPrompted)
    try {
      const params = { sessionId: this.#sessionId, prompt: [{ type: 'text' as const, text: question }] }
      const { stopReason } = await this.#request(names.prompt, params)
      screen.endTurn()
      if (this.#failure !== undefined) throw new EndpointFailure(clean(this.#failure))
      if (stopReason !== 'end_turn') screen.note(`stopped: ${stopReason}`)
      return stopReason
    } finally {
      screen.endTurn()
      this.#turn = 'none'
    }
  }

  /** After a loss: the same session if the agent can bring it back, else a new one. */
  async recover(): Promise<'loaded' | 'new'> {
    const lost = this.lost
    if (lost === 'connection') await this.#reach()
    const isBack = this.#sessionId !== '' && (await this.#bringBack(this.#sessionId))
    if (!isBack) await this.newSession()
    this.#lost = undefined
    return isBack ? 'loaded' : 'new'
  }

  /** Undefined: the agent does not list its sessions. */
  async listSessions(): Promise<SessionInfo[] | undefined> {
    if (!this.#capabilities?.sessionCapabilities?.list) return undefined
    const listed: SessionInfo[] = []
    for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
      const { sessions, nextCursor } = await this.#request(names.list, cursor === undefined ? {} : { cursor })
      listed.push(...sessions)
      cursor = listed.length < MAX_LISTED ? (nextCursor ?? undefined) : undefined
    }
    return listed.slice(0, MAX_LISTED)
  }

  get canLoad(): boolean {
    return this.#capabilities?.loadSession === true || Boolean(this.#capabilities?.sessionCapabilities?.resume)
  }

  /** Goes on with another session; what was said in it is shown if the agent tells it. */
  async load(sessionId: string): Promise<void> {
    const before = this.#sessionId
    // What is told of it while it is loaded is to be seen.
    this.#sessionId = sessionId
    try {
      this.settings.open(await this.#fetch(sessionId, this.#capabilities?.loadSession ? 'load' : 'resume'))
      this.#parts.screen.endLine()
    } catch (error) {
      this.#sessionId = before
      throw error
    }
  }

  async choose({ configId }: Setting, value: string): Promise<void> {
    const sessionId = this.#sessionId
    if (configId === undefined) {
      await this.#request(names.setMode, { sessionId, modeId: value })
      return this.settings.setMode(value)
    }
    const { configOptions } = await this.#request(names.setConfigOption, { sessionId, configId, value })
    this.settings.setOptions(configOptions)
  }

  /** Ctrl-C: whether it was taken as a cancel; if not, the user wants to leave. */
  interrupt(): boolean {
    if (this.#turn !== 'running') return false
    this.#turn = 'cancelling'
    this.#parts.screen.cancelling()
    this.#link?.cancel(this.#sessionId)
    return true
  }

  async close(): Promise<void> {
    await this.#link?.close()
  }

  get #capabilities() {
    return this.#link?.welcome?.agentCapabilities
  }

  async #reach(): Promise<void> {
    await this.#link?.close()
    this.#link = new AgentLink(await this.#parts.connect(), {
      updated: (params) => this.#hear(params),
      askPermission: (params) => this.#permit(params),
    })
    await this.#link.greet(this.#parts.version)
  }

  readonly #request: AgentLink['request'] = async (method, params) => {
    try {
      if (this.#link === undefined) throw new ChatFailure('there is no agent to ask', { lost: 'connection' })
      return await this.#link.request(method, params)
    } catch (error) {
      if (error instanceof ChatFailure) this.#lost = error.lost ?? this.#lost
      this.#parts.screen.endTurn()
      throw error
    }
  }

  /** Without showing again what is on the screen. */
  async #bringBack(sessionId: string): Promise<boolean> {
    if (!this.canLoad) return false
    this.#isReplaying = true
    try {
      const how = this.#capabilities?.sessionCapabilities?.resume ? 'resume' : 'load'
      this.settings.open(await this.#fetch(sessionId, how))
      return true
    } catch (error) {
      if (!(error instanceof ChatFailure) || error.lost === 'connection') throw error
      return false
    } finally {
      this.#isReplaying = false
    }
  }

  #fetch(sessionId: string, how: 'load' | 'resume') {
    return this.#request(names[how], { sessionId, cwd: this.#parts.cwd, mcpServers: [] })
  }

  #adopt(sessionId: string, opened: Parameters<Settings['open']>[0]): void {
    this.#sessionId = sessionId
    this.#lost = undefined
    this.settings.open(opened)
    const early = this.#early ?? []
    this.#early = undefined
    for (const params of early) this.#hear(params)
  }

  #hear(params: SessionNotification): void {
    if (params.sessionId !== this.#sessionId) {
      if (this.#early !== undefined && this.#early.length < MAX_EARLY) this.#early.push(params)
      return
    }
    this.settings.take(params.update)
    const failure = failureIn(params.update)
    if (failure !== undefined) this.#failure = failure
    else if (!this.#isReplaying) this.#parts.screen.show(params.update)
  }

  async #permit(params: RequestPermissionRequest): Promise<RequestPermissionResponse> {
    const { screen, ask } = this.#parts
    if (ask === undefined) screen.endLine()
    else screen.preview(params.toolCall)
    screen.endLine()
    const answer = await answerPermission(params, this.#turn === 'running' ? ask : undefined)
    if (answer.outcome.outcome === 'cancelled') this.interrupt()
    if (ask === undefined) screen.note('refused a tool: there is no terminal to ask on')
    return answer
  }
}

/** Our own agents mark what they say in place of an answer. */
function failureIn(update: SessionUpdate): string | undefined {
  if (update.sessionUpdate !== 'agent_message_chunk' || update._meta?.[FAILURE_MARK] !== true) return undefined
  return update.content.type === 'text' ? update.content.text : 'the agent failed'
}
