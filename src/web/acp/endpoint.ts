/**
 * `/acp`: the Agent Client Protocol over HTTP and WebSocket (contract 10.13, 10.14).
 *
 * It finds the connection that a request belongs to, and looks at nothing in it but where it goes.
 */
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { SHAPE } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { accepts, STREAM_TYPE } from '../accept.ts'
import { type Message, type Read, readLine, readMessage } from '../body.ts'
import type { WebPort } from '../port.ts'
import type { Adapter } from '../service.ts'
import type { WebRequest } from '../web-request.ts'
import { acceptWebSocket } from '../websocket.ts'
import { AcpConnection } from './connection.ts'
import { CONNECTION_HEADER, SESSION_HEADER } from './headers.ts'

const ID_BYTES = 16
const OPEN_ARRAY = 0x5b

export class AcpAdapter implements Adapter {
  readonly methods = ['POST', 'GET', 'DELETE']
  readonly takesLogin = true
  readonly #port: WebPort
  readonly #connections = new Map<string, AcpConnection>()

  constructor(port: WebPort) {
    this.#port = port
  }

  async serve(web: WebRequest): Promise<void> {
    if (web.method === 'POST') return this.#post(web)
    if (web.method === 'GET' && !accepts(web.header('accept'), STREAM_TYPE))
      return web.refuse({ reason: 'not_acceptable', detail: { needs: [STREAM_TYPE] } })
    const connection = this.#find(web)
    if (connection === undefined) return this.#noConnection(web)
    if (web.method === 'GET') return connection.openStream(web, web.header(SESSION_HEADER))
    connection.leave()
    web.answer(202, undefined)
  }

  upgrade(web: WebRequest, socket: Duplex, head: Buffer): void {
    const headers = { [CONNECTION_HEADER]: makeId() }
    acceptWebSocket(this.#port, { binary: 'ignored', headers }, { web, socket, head })
  }

  get size(): number {
    return this.#connections.size
  }

  async #post(web: WebRequest): Promise<void> {
    const known = this.#find(web)
    // Nothing is read that would only wait.
    await known?.hasRoom()
    const message = await this.#read(web)
    if ('refusal' in message) return web.refuse(message.refusal)
    const id = message.envelope.idSpelling()
    const isGreeting = message.envelope.shape === SHAPE.request && message.envelope.text(FIELD.method) === 'initialize'
    if (known !== undefined && isGreeting) return web.refuse({ reason: 'initialized_before', id })
    if (known !== undefined) return known.post(web, message)
    if (!isGreeting || web.header(CONNECTION_HEADER) !== undefined) return this.#noConnection(web, id)
    this.#greet(web, message)
  }

  async #read(web: WebRequest): Promise<Read<Message>> {
    const line = await readLine(web, this.#port.maxMessageBytes)
    if ('refusal' in line) return line
    const message = readMessage(web, line)
    const isArray = 'refusal' in message && line.find((byte) => byte > 0x20) === OPEN_ARRAY
    return isArray && message.refusal.reason === 'bad_envelope' ? { refusal: { reason: 'no_batches' } } : message
  }

  #greet(web: WebRequest, message: Message): void {
    const id = makeId()
    const gone = (): void => void this.#connections.delete(id)
    const connection = new AcpConnection({ id, port: this.#port, web, gone })
    this.#connections.set(id, connection)
    connection.greet(web, message)
  }

  /** The connection that is named, if it is this principal's. */
  #find(web: WebRequest): AcpConnection | undefined {
    const connection = this.#connections.get(web.header(CONNECTION_HEADER) ?? '')
    const isTheirs = connection?.principal === web.admitted.identity.principal && connection.pool === web.pool
    return isTheirs ? connection : undefined
  }

  #noConnection(web: WebRequest, id = 'null'): void {
    web.refuse({
      reason: web.header(CONNECTION_HEADER) === undefined ? 'connection_required' : 'unknown_connection',
      id,
    })
  }
}

function makeId(): string {
  return randomBytes(ID_BYTES).toString('hex')
}
