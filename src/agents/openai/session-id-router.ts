/**
 * Serves the seed's dialect, in which every line names a bus session at its top level.
 *
 * The name is taken off on the way in and put back on the way out: on answers, on notifications and on the agent's own
 * requests. A client that never sends one never sees one. Invariant: an answer carries the name its request came with.
 */
import type { AnyMessage } from '@agentclientprotocol/sdk'
import { isRecord } from './errors.ts'

type Line = AnyMessage & { sessionId?: unknown; params?: unknown; result?: unknown }

/** Beyond this the oldest names are forgotten: clients come and go, a worker stays. */
export const maxNames = 100_000

export class SessionIdRouter {
  readonly #byRequest = new Map<string, string>()
  readonly #bySession = new Map<string, string>()
  /** The newest session of each name, for lines that name nothing else. */
  readonly #newest = new Map<string, string>()

  /** The line without its name. */
  inbound(message: AnyMessage): AnyMessage {
    const { sessionId: name, ...rest } = message as Line
    if (name === undefined) return message
    const line = rest as Line
    if (typeof name !== 'string' || !('method' in line)) return line
    if ('id' in line) remember(this.#byRequest, keyOf(line.id), name)
    const session = sessionIn(line.params)
    if (session !== undefined) this.#learn(session, name)
    else if (isAddressed(line.method)) return this.#address(line, name)
    return line
  }

  /** The line with the name it belongs to, if there is one. */
  outbound(message: AnyMessage): AnyMessage {
    const name = 'method' in message ? this.#bySession.get(sessionIn(message.params) ?? '') : this.#answered(message)
    return name === undefined ? message : named(message, name)
  }

  #answered(message: Line): string | undefined {
    if (!('id' in message)) return undefined
    const key = keyOf(message.id)
    const name = this.#byRequest.get(key)
    if (name === undefined) return undefined
    this.#byRequest.delete(key)
    const session = sessionIn(message.result)
    if (session !== undefined) this.#learn(session, name)
    return name
  }

  #learn(session: string, name: string): void {
    remember(this.#bySession, session, name)
    remember(this.#newest, name, session)
  }

  #address(line: Line, name: string): AnyMessage {
    const params = isRecord(line.params) ? line.params : {}
    return { ...line, params: { ...params, sessionId: this.#newest.get(name) ?? name } } as AnyMessage
  }
}

const addressed = new Set(['session/prompt', 'session/cancel', 'cancel'])
const isAddressed = (method: unknown): boolean => addressed.has(method as string)

function named(message: AnyMessage, name: string): AnyMessage {
  return Object.assign({}, message, { sessionId: name })
}

function sessionIn(value: unknown): string | undefined {
  return isRecord(value) && typeof value['sessionId'] === 'string' ? value['sessionId'] : undefined
}

/** `5` and `"5"` are different ids; what can be no id is never made a text: it may not be able to become one. */
function keyOf(id: unknown): string {
  return typeof id === 'object' ? 'none' : `${typeof id}:${id}`
}

function remember(names: Map<string, string>, key: string, name: string): void {
  names.delete(key)
  names.set(key, name)
  if (names.size > maxNames) names.delete(names.keys().next().value!)
}
