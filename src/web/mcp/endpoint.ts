/**
 * `/mcp` and `/mcp/{pool}`: MCP over Streamable HTTP in both eras (contract 10.5 to 10.12).
 *
 * It reads heads and bodies and says which era a message is of; what happens to it is decided by the session it belongs to, or by
 * the stateless way. The message alone says its era: no state of ours is consulted.
 */
import { unpack } from '../../wire/batches.ts'
import { Envelope, SHAPE } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { accepts, JSON_TYPE, STREAM_TYPE } from '../accept.ts'
import { type Message, type Read, readLine, readMessage } from '../body.ts'
import type { WebPort } from '../port.ts'
import type { Adapter } from '../service.ts'
import type { Refusal, WebRequest } from '../web-request.ts'
import { allowsArrays, REVISIONS, STATELESS } from './revisions.ts'
import type { Session } from './session.ts'
import type { Sessions } from './sessions.ts'
import type { StatelessPosts } from './stateless.ts'

const VERSION = 'mcp-protocol-version'
const SESSION = 'mcp-session-id'
const MAX_ARRAY = 1_024
const NO_INITIALIZE = 'an array holds no initialize'

export class McpEndpoint implements Adapter {
  readonly methods = ['POST', 'GET', 'DELETE']
  readonly #port: WebPort
  readonly #sessions: Sessions
  readonly #stateless: StatelessPosts

  constructor(port: WebPort, sessions: Sessions, stateless: StatelessPosts) {
    this.#port = port
    this.#sessions = sessions
    this.#stateless = stateless
  }

  async serve(web: WebRequest): Promise<void> {
    const version = web.header(VERSION)?.trim()
    if (web.method === 'POST') return this.#post(web, version)
    if (version === STATELESS) return web.refuse({ reason: 'wrong_method', headers: { allow: 'POST' } })
    if (web.method === 'GET' && !accepts(web.header('accept'), STREAM_TYPE))
      return web.refuse({ reason: 'not_acceptable', detail: { needs: [STREAM_TYPE] } })
    const refusal = problemOfVersion(version)
    if (refusal !== undefined) return web.refuse(refusal)
    const session = this.#sessions.find(web, web.header(SESSION))
    if (session === undefined || !(await session.ready())) return this.#noSession(web, 'null')
    if (web.response.destroyed) return
    if (web.method === 'GET') return session.get(web, web.header('last-event-id'))
    session.end()
    web.answer(204, undefined)
  }

  #noSession(web: WebRequest, id: string): void {
    web.refuse({ reason: web.header(SESSION) === undefined ? 'session_required' : 'unknown_session', id })
  }

  async #post(web: WebRequest, version: string | undefined): Promise<void> {
    const accept = web.header('accept')
    if (!accepts(accept, JSON_TYPE) || !accepts(accept, STREAM_TYPE))
      return web.refuse({ reason: 'not_acceptable', detail: { needs: [JSON_TYPE, STREAM_TYPE] } })
    const hasNone = version === STATELESS || web.denied !== undefined
    const session = hasNone ? undefined : this.#sessions.find(web, web.header(SESSION))
    // Nothing is read that would only wait.
    if (session !== undefined) await session.ready()
    const line = await readLine(web, this.#port.maxMessageBytes)
    if ('refusal' in line) return web.refuse(line.refusal)
    const message = readMessage(web, line)
    if ('refusal' in message) return this.#postArray(web, line, session, message.refusal)
    if (isStateless(message, version)) return this.#stateless.serve(web, message)
    const refusal = problemOfVersion(version, message.envelope.idSpelling())
    if (refusal !== undefined) return web.refuse(refusal)
    if (message.envelope.shape === SHAPE.request && message.envelope.text(FIELD.method) === 'initialize')
      return this.#sessions.begin(web, message)
    if (session === undefined || session.isOver) return this.#noSession(web, message.envelope.idSpelling())
    session.post(web, [line], false)
  }

  #postArray(web: WebRequest, line: Buffer, session: Session | undefined, refusal: Refusal): void {
    const mayBe = session !== undefined && !session.isOver && allowsArrays(session.revision)
    const lines = mayBe && refusal.reason === 'bad_envelope' ? messagesOf(line) : undefined
    if (lines === undefined) return web.refuse(refusal)
    if ('refusal' in lines) return web.refuse(lines.refusal)
    session!.post(web, lines, true)
  }
}

/** The messages of an array, all of them sound; undefined: it is none. */
function messagesOf(line: Buffer): Read<Buffer[]> | undefined {
  const envelope = new Envelope()
  envelope.read(line, 0, line.length)
  if (!envelope.isArray) return undefined
  const { lines, problem } = unpack(envelope, MAX_ARRAY)
  if (problem !== undefined) return { refusal: { reason: 'bad_envelope', detail: { problem } } }
  const messages = lines.map((each) => each.subarray(0, -1))
  const opens = messages.some(
    (each) => envelope.read(each, 0, each.length) === SHAPE.request && envelope.text(FIELD.method) === 'initialize',
  )
  return opens ? { refusal: { reason: 'bad_envelope', detail: { problem: NO_INITIALIZE } } } : messages
}

function problemOfVersion(version: string | undefined, id = 'null'): Refusal | undefined {
  if (version === undefined || REVISIONS.includes(version)) return undefined
  return { reason: 'unknown_version', detail: { supported: REVISIONS, requested: version }, id }
}

/** What says its version itself needs no session; nor does what its head says to be of that revision, but the handshake. */
function isStateless({ envelope }: Message, version: string | undefined): boolean {
  if (envelope.has(FIELD.metaProtocolVersion) && envelope.shape === SHAPE.request) return true
  return version === STATELESS && envelope.text(FIELD.method) !== 'initialize'
}
