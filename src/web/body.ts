/**
 * Reads the body of a request as one line (contract 10.3, 10.4): within the bound, in time, and in any layout.
 *
 * A body that is declared too long is not read at all, nor is one of another type. What comes out is one JSON message as it was
 * written, but for line breaks between its tokens.
 */
import type { IncomingMessage } from 'node:http'
import { Envelope, SHAPE } from '../wire/envelope.ts'
import { toOneLine } from '../wire/one-line.ts'
import type { Refusal, WebRequest } from './web-request.ts'

const STALL_MS = 30_000

/** A message as it came: its line, and its envelope, which is the reader's own. */
export interface Message {
  readonly line: Buffer
  readonly envelope: Envelope
}

export type Read<T> = T | { readonly refusal: Refusal }

/** The line of the body, whatever it says. */
export async function readLine(web: WebRequest, maxBytes: number): Promise<Read<Buffer>> {
  const { request } = web
  if (!isJson(request.headers['content-type']) || isEncoded(request)) return { refusal: { reason: 'wrong_media_type' } }
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return { refusal: tooLarge(maxBytes) }
  if (request.headers.expect?.toLowerCase() === '100-continue') inviteBody(web)
  const bytes = await readBytes(request, maxBytes)
  return Buffer.isBuffer(bytes) ? toOneLine(bytes) : bytes
}

/** One message that its sender may send here; an array of them is refused here, where no protocol allows it. */
export function readMessage({ denied }: WebRequest, line: Buffer): Read<Message> {
  const envelope = new Envelope()
  const shape = envelope.read(line, 0, line.length)
  if (shape === SHAPE.notJson) return { refusal: { reason: 'not_json' } }
  if (shape !== SHAPE.bad && denied === undefined) return { line, envelope }
  if (shape !== SHAPE.bad) return { refusal: { ...denied!, id: envelope.idSpelling() } }
  return { refusal: { reason: 'bad_envelope', id: envelope.idSpelling(), detail: { problem: envelope.problem } } }
}

/** When it is its turn: behind an answer that is under way the runtime would write this into its own answer. */
function inviteBody({ request, response }: WebRequest): void {
  if (response.socket !== null) return response.writeContinue()
  response.once('socket', () => {
    if (!request.complete && !response.headersSent) response.writeContinue()
  })
}

function readBytes(request: IncomingMessage, maxBytes: number): Promise<Read<Buffer>> {
  return new Promise((resolve) => {
    const body = new Gathered()
    const done = (result: Read<Buffer>): void => {
      clearTimeout(timer)
      request.off('data', take).off('end', end).off('close', gone)
      if (!Buffer.isBuffer(result)) request.pause()
      resolve(result)
    }
    const late = (): void => done({ refusal: { reason: 'body_timeout' } })
    const timer = setTimeout(late, STALL_MS)
    const take = (part: Buffer): void => {
      if (body.length + part.length > maxBytes) return done({ refusal: tooLarge(maxBytes) })
      body.add(part)
      timer.refresh()
    }
    const end = (): void => done(body.bytes)
    const gone = (): void => done({ refusal: { reason: 'body_timeout' } })
    request.on('data', take).on('end', end).on('close', gone)
  })
}

/** What has come of a body. However small its parts are, it takes no more than twice their bytes. */
class Gathered {
  #room: Buffer = Buffer.alloc(0)
  length = 0

  add(part: Buffer): void {
    const length = this.length + part.length
    if (this.length === 0) this.#room = part
    else {
      if (length > this.#room.length) this.#grow(Math.max(length, 2 * this.#room.length))
      part.copy(this.#room, this.length)
    }
    this.length = length
  }

  #grow(bytes: number): void {
    const room = Buffer.allocUnsafeSlow(bytes)
    this.#room.copy(room, 0, 0, this.length)
    this.#room = room
  }

  get bytes(): Buffer {
    return this.#room.subarray(0, this.length)
  }
}

function tooLarge(limit: number): Refusal {
  return { reason: 'message_too_large', detail: { limit } }
}

/** Whether its bytes would have to be decoded to be read. */
function isEncoded({ headers }: IncomingMessage): boolean {
  const transfer = headers['transfer-encoding']?.trim().toLowerCase() ?? 'chunked'
  return headers['content-encoding'] !== undefined || transfer !== 'chunked'
}

/** In UTF-8, which JSON is anyway. */
function isJson(type: string | undefined): boolean {
  const [media = '', ...parameters] = (type ?? '').split(';').map((part) => part.trim().toLowerCase())
  return (
    media === 'application/json' &&
    parameters.every((part) => !part.startsWith('charset=') || /^charset="?utf-?8"?$/.test(part))
  )
}
