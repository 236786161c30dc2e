/**
 * A conversation with one agent: a session, turns one after the other, and Ctrl-C.
 *
 * It reads no options and owns no terminal. Invariant: the first interrupt of a turn cancels it, the next one leaves.
 */
import {
  type ClientConnection,
  client,
  methods,
  type NewSessionRequest,
  PROTOCOL_VERSION,
  type PromptRequest,
  RequestError,
  type StopReason,
} from '@agentclientprotocol/sdk'
import { reasonOf } from '../../client/errors.ts'
import type { Connection } from './connection.ts'
import { ChatFailure } from './failure.ts'
import { type AskUser, answerPermission } from './permission.ts'
import { clean, type Screen } from './screen.ts'

export interface ConversationParts {
  readonly connection: Connection
  readonly screen: Screen
  /** Absent where nobody can be asked. */
  readonly ask: AskUser | undefined
  readonly version: string
  readonly cwd: string
}

export class Conversation {
  readonly #parts: ConversationParts
  readonly #acp: ClientConnection
  #sessionId = ''
  #turn: 'none' | 'running' | 'cancelling' = 'none'

  constructor(parts: ConversationParts) {
    this.#parts = parts
    this.#acp = client({ name: 'stdio-bus-chat' })
      .onNotification(methods.client.session.update, ({ params }) => {
        if (params.sessionId === this.#sessionId) parts.screen.show(params.update)
      })
      .onRequest(methods.client.session.requestPermission, async ({ params }) => {
        parts.screen.endLine()
        const answer = await answerPermission(params, this.#turn === 'running' ? parts.ask : undefined)
        if (answer.outcome.outcome === 'cancelled') this.interrupt()
        if (!parts.ask) parts.screen.note('refused a tool: there is no terminal to ask on')
        return answer
      })
      .connect(parts.connection.stream)
  }

  /** Greets the agent and opens a session. */
  async open(): Promise<void> {
    const { agent } = this.#acp
    const clientInfo = { name: 'stdio-bus', version: this.#parts.version }
    const hello = { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {}, clientInfo }
    await this.#orFailure(agent.request(methods.agent.initialize, hello))
    const session: NewSessionRequest = { cwd: this.#parts.cwd, mcpServers: [] }
    const created = agent.request(methods.agent.session.new, session)
    this.#sessionId = (await this.#orFailure(created)).sessionId
  }

  /** Puts a question and shows the answer. */
  async ask(question: string): Promise<StopReason> {
    this.#turn = 'running'
    try {
      const params: PromptRequest = { sessionId: this.#sessionId, prompt: [{ type: 'text', text: question }] }
      const turn = this.#acp.agent.request(methods.agent.session.prompt, params)
      const { stopReason } = await this.#orFailure(turn)
      this.#parts.screen.endTurn()
      if (stopReason !== 'end_turn') this.#parts.screen.note(`stopped: ${stopReason}`)
      return stopReason
    } finally {
      this.#turn = 'none'
    }
  }

  /** Ctrl-C: whether it was taken as a cancel; if not, the user wants to leave. */
  interrupt(): boolean {
    if (this.#turn !== 'running') return false
    this.#turn = 'cancelling'
    void this.#acp.agent.notify(methods.agent.session.cancel, { sessionId: this.#sessionId }).catch(() => {})
    return true
  }

  async close(): Promise<void> {
    this.#acp.close()
    await this.#parts.connection.close()
  }

  async #orFailure<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      this.#parts.screen.endTurn()
      // That the bus has gone, our own end of the connection says.
      if (error instanceof RequestError && reasonOf(error) !== 'bus_gone') throw refused(error)
      // The exit of a child is known a moment after the end of its output.
      await new Promise((resolve) => setTimeout(resolve, 50))
      throw new ChatFailure(`${this.#parts.connection.lostReason()} before it answered`, { cause: error })
    }
  }
}

function refused(error: RequestError): ChatFailure {
  const data = error.data === undefined ? '' : ` ${JSON.stringify(error.data).slice(0, 500)}`
  return new ChatFailure(`the agent refused: ${clean(error.message)} (${error.code})${clean(data)}`, { cause: error })
}
