/**
 * One connection to an agent, greeted: puts requests to it, and says in words for people how they failed.
 *
 * It knows no session. Invariant: every request ends with its answer or a ChatFailure.
 */
import {
  type AgentRequestParamsByMethod,
  type AgentRequestResponsesByMethod,
  type ClientConnection,
  client,
  type InitializeResponse,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
} from '@agentclientprotocol/sdk'
import { reasonOf } from '../../client/errors.ts'
import { clean } from './clean.ts'
import type { Connection } from './connection.ts'
import { ChatFailure, poolMistake } from './failure.ts'

export interface LinkHooks {
  updated(params: SessionNotification): void
  askPermission(params: RequestPermissionRequest): Promise<RequestPermissionResponse>
}

type Method = keyof AgentRequestParamsByMethod & keyof AgentRequestResponsesByMethod

/** The session was there and is no more; the request has reached nobody. */
const UNSEEN_REASONS: readonly (string | undefined)[] = ['session_lost', 'session_not_owned', 'unknown_session']
const SESSION_NOT_FOUND = -32_002
/** The exit of a child is known a moment after the end of its output. */
const EXIT_GRACE_MS = 50

export class AgentLink {
  readonly #connection: Connection
  readonly #acp: ClientConnection
  /** What the agent said of itself. */
  welcome: InitializeResponse | undefined

  constructor(connection: Connection, hooks: LinkHooks) {
    this.#connection = connection
    this.#acp = client({ name: 'stdio-bus-chat' })
      .onNotification(methods.client.session.update, ({ params }) => hooks.updated(params))
      .onRequest(methods.client.session.requestPermission, ({ params }) => hooks.askPermission(params))
      .connect(connection.stream)
  }

  get isOver(): boolean {
    return this.#acp.signal.aborted
  }

  async greet(version: string): Promise<void> {
    const clientInfo = { name: 'stdio-bus', version }
    const hello = { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {}, clientInfo }
    this.welcome = await this.request(methods.agent.initialize, hello)
  }

  async request<M extends Method>(
    method: M,
    params: AgentRequestParamsByMethod[M],
  ): Promise<AgentRequestResponsesByMethod[M]> {
    try {
      return await this.#acp.agent.request(method, params)
    } catch (error) {
      // That the bus has gone, our own end of the connection says.
      if (error instanceof RequestError && reasonOf(error) !== 'bus_gone') throw refused(error)
      await new Promise((resolve) => setTimeout(resolve, EXIT_GRACE_MS))
      const message = `${this.#connection.lostReason()} before it answered`
      throw new ChatFailure(message, { cause: error, lost: 'connection' })
    }
  }

  cancel(sessionId: string): void {
    void this.#acp.agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => {})
  }

  async close(): Promise<void> {
    this.#acp.close()
    await this.#connection.close()
  }
}

function refused(error: RequestError): Error {
  const mistake = poolMistake(error)
  if (mistake !== undefined) return mistake
  const reason = reasonOf(error)
  const isUnseen = error.code === SESSION_NOT_FOUND || UNSEEN_REASONS.includes(reason)
  const lost = isUnseen || reason === 'worker_exited' ? { lost: 'session' as const, isUnseen } : {}
  const message = reason === undefined ? sayRefusal(error) : sayFault(error, reason)
  return new ChatFailure(clean(message), { cause: error, ...lost })
}

function sayRefusal({ message, code, data }: RequestError): string {
  const more = data === undefined ? '' : ` ${JSON.stringify(data).slice(0, 500)}`
  return `the agent refused: ${message} (${code})${more}`
}

/** A fault of the bus has a reason, and what people want to know of it beside. */
function sayFault({ message, data }: RequestError, reason: string): string {
  const { exitCode, signal, why } = data as Readonly<Record<string, unknown>>
  const details = [
    reason,
    typeof exitCode === 'number' ? `exit code ${exitCode}` : '',
    typeof signal === 'string' ? signal : '',
    typeof why === 'string' ? why.slice(0, 500) : '',
  ]
  return `${message} (${details.filter((detail) => detail !== '').join(', ')})`
}
