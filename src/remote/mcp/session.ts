/**
 * A session of the handshake era as the server knows it, and what has to be said to it again when it is lost: the
 * introduction, the subscriptions, the log level (contract 11.3).
 *
 * It sends nothing. Whatever it remembers is bounded; the oldest is forgotten.
 */
import { RemoteFault } from '../faults.ts'
import type { HttpReply } from './http-caller.ts'
import type { Incoming, Outgoing } from './message.ts'

const SESSION_ID = /^[\x21-\x7e]{1,1024}$/
const VERSION = /^[\x21-\x7e]{1,64}$/
const MAX_SUBSCRIPTIONS = 10_000
const SESSION_WORD = /session/i

/** One of them; after it was lost there is another. */
export interface Session {
  /** Undefined: the server keeps none. */
  readonly id: string | undefined
  readonly version: string | undefined
}

export class SessionMemory {
  current: Session | undefined
  introduction: Outgoing | undefined
  confirmation: Outgoing | undefined
  readonly #subscriptions = new Map<string, Outgoing>()
  #level: Outgoing | undefined

  /** The headers of a message in the session. */
  headers(session: Session | undefined): Record<string, string> {
    return {
      ...(session?.id === undefined ? {} : { 'mcp-session-id': session.id }),
      ...(session?.version === undefined ? {} : { 'mcp-protocol-version': session.version }),
    }
  }

  /** The server has welcomed somebody. */
  welcome(introduction: Outgoing, reply: HttpReply, { version }: Incoming): Session {
    const id = reply.header('mcp-session-id')
    if (id !== undefined && !SESSION_ID.test(id))
      throw new RemoteFault('upstream_bad_response', { problem: 'its session id is none' })
    const isSound = version !== undefined && VERSION.test(version)
    this.introduction = introduction
    return (this.current = { id, version: isSound ? version : undefined })
  }

  /** A request was answered with a result: the session may have another state now. */
  note(message: Outgoing): void {
    const { method, uri } = message
    if (method === 'logging/setLevel') this.#level = message
    if (uri === undefined) return
    if (method === 'resources/unsubscribe') this.#subscriptions.delete(uri)
    if (method !== 'resources/subscribe') return
    this.#subscriptions.delete(uri)
    this.#subscriptions.set(uri, message)
    for (const oldest of this.#subscriptions.keys()) {
      if (this.#subscriptions.size <= MAX_SUBSCRIPTIONS) break
      this.#subscriptions.delete(oldest)
    }
  }

  /** The server does not take it any more. */
  forget(message: Outgoing): void {
    if (message === this.#level) this.#level = undefined
    if (message.uri !== undefined) this.#subscriptions.delete(message.uri)
  }

  /** The requests that bring a new session to where the old one was. */
  get repeats(): readonly Outgoing[] {
    return [...(this.#level === undefined ? [] : [this.#level]), ...this.#subscriptions.values()]
  }
}

/** Whether the server says, by this status and body, that it does not know the session that the request named. */
export function isSessionLost(session: Session | undefined, status: number, body: Buffer): boolean {
  if (session?.id === undefined) return false
  if (status === 404) return true
  if (status !== 400) return false
  const message = messageIn(body)
  return message !== undefined && SESSION_WORD.test(message)
}

function messageIn(body: Buffer): string | undefined {
  try {
    const { error } = JSON.parse(body.toString('utf8')) as { error?: { message?: unknown } | string }
    const message = typeof error === 'string' ? error : error?.message
    return typeof message === 'string' ? message : undefined
  } catch {
    return undefined
  }
}
