/**
 * One client of MCP over HTTP on one kept connection, with one call in flight: as little as a client can be, so that what is measured
 * is the other end. Every answer must carry the words of its own call.
 */
import { connect } from 'node:net'

const HEAD_END = '\r\n\r\n'
const LAST_CHUNK = '0\r\n\r\n'
const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'bench', version: '1' },
}

export class HttpLane {
  samples = []
  wrong = 0
  #url
  #name
  #socket
  #text = ''
  #settle
  #session = ''
  #id = 0

  constructor(url, name) {
    this.#url = new URL(url)
    this.#name = name
  }

  async open() {
    const { head } = await this.#post({ id: 0, method: 'initialize', params: INITIALIZE })
    const id = /^mcp-session-id: (.*)\r$/im.exec(head)?.[1]
    this.#session = id === undefined ? '' : `Mcp-Session-Id: ${id}\r\nMcp-Protocol-Version: 2025-11-25\r\n`
    await this.#post({ method: 'notifications/initialized' })
    return this
  }

  /** A stream for what belongs to no request, on a connection of its own; settles when its head is there. */
  listen() {
    const socket = this.#connect()
    socket.write(
      `GET ${this.#url.pathname} HTTP/1.1\r\nHost: ${this.#url.host}\r\nAccept: text/event-stream\r\n${this.#session}\r\n`,
    )
    return new Promise((resolve, reject) => {
      socket.once('error', reject)
      socket.once('close', () => reject(new Error('the stream was refused')))
      socket.once('data', () => resolve(socket))
    })
  }

  /** Calls one after the other until `isOver`. */
  async run(isOver) {
    while (!isOver()) {
      const beganMs = performance.now()
      await this.call()
      this.samples.push(performance.now() - beganMs)
    }
  }

  async call() {
    const message = `${this.#name}-${++this.#id}`
    const { body } = await this.#post({
      id: this.#id,
      method: 'tools/call',
      params: { name: 'echo', arguments: { message } },
    })
    if (!body.includes(`"Echo: ${message}"`)) this.wrong++
  }

  /** So many calls whose answers are so long, and never read. */
  clog(count, bytes) {
    const params = { name: 'echo', arguments: { message: 'x'.repeat(bytes) } }
    const socket = this.#connect()
    socket.pause()
    socket.on('error', () => {})
    for (let id = 1; id <= count; id++) socket.write(this.#spell({ id, method: 'tools/call', params }))
    return socket
  }

  close() {
    this.#socket?.destroy()
  }

  #connect() {
    const { hostname, port } = this.#url
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    return socket.setEncoding('latin1')
  }

  #spell(message) {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    return (
      `POST ${this.#url.pathname} HTTP/1.1\r\nHost: ${this.#url.host}\r\nContent-Type: application/json\r\n` +
      `Accept: application/json, text/event-stream\r\n${this.#session}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    )
  }

  #post(message) {
    if (this.#socket === undefined || this.#socket.destroyed) this.#open()
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#socket.write(this.#spell(message))
    })
  }

  #open() {
    this.#text = ''
    this.#socket = this.#connect()
    this.#socket.on('data', (text) => this.#take(text))
    this.#socket.on('error', (error) => this.#settle?.reject(error))
    this.#socket.on('close', () => this.#settle?.reject(new Error('closed in the middle of a call')))
  }

  #take(text) {
    this.#text += text
    const at = this.#text.indexOf(HEAD_END)
    if (at === -1) return
    const head = this.#text.slice(0, at + 2)
    const body = this.#text.slice(at + HEAD_END.length)
    if (!isWhole(head, body)) return
    this.#text = ''
    const { resolve } = this.#settle
    this.#settle = undefined
    if (/^connection: close\r$/im.test(head)) this.#socket.destroy()
    resolve({ head, body })
  }
}

function isWhole(head, body) {
  const length = /^content-length: (\d+)\r$/im.exec(head)?.[1]
  if (length !== undefined) return body.length >= Number(length)
  return !/^transfer-encoding: chunked\r$/im.test(head) || body.endsWith(LAST_CHUNK)
}
