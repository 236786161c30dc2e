/**
 * What one connection to the web door carries: requests one behind the other, messages as frames, or either of them wounded.
 *
 * A wounded one may mean anything; all that is known of its answers is that they are answers, and nobody else's.
 */
import { chance } from '../grammar.mjs'
import { mutate } from '../mutate.mjs'
import { faultOf, parseLine, Reference } from '../reference.mjs'
import { MAX_BODY_BYTES, makeExchange, spellBody } from './exchange.mjs'
import { closeFrame, frame, OPCODE } from './frames.mjs'

const SIZES = [1, 7, 100, 1000, 65_536, 65_536, 65_536]
const OTHER = Buffer.from(
  'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
)

export const UPGRADE = Buffer.from(
  'GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
)

/** How a frame that cannot be taken is answered: with this code. */
const UNSOUND = [
  () => ({ bytes: frame(OPCODE.text, '{}', { isMasked: false }), codes: [1002] }),
  () => ({ bytes: frame(OPCODE.text, '{}', { reserved: 4 }), codes: [1002] }),
  (random) => ({ bytes: frame(random.pick([3, 7, 11, 15]), ''), codes: [1002] }),
  () => ({ bytes: frame(OPCODE.continuation, '{}'), codes: [1002] }),
  () => ({ bytes: frame(OPCODE.ping, 'x'.repeat(126)), codes: [1002] }),
  () => ({ bytes: frame(OPCODE.ping, '', { isFinal: false }), codes: [1002] }),
  () => ({ bytes: frame(OPCODE.close, 'x'), codes: [1002] }),
  () => ({ bytes: closeFrame(1005), codes: [1002] }),
  () => ({ bytes: closeFrame(1000, 'bye'), codes: [1000] }),
  () => ({ bytes: frame(OPCODE.binary, '{}'), codes: [1003] }),
  () => ({ bytes: frame(OPCODE.text, Buffer.from([0x22, 0xff, 0x22])), codes: [1007] }),
  () => ({ bytes: frame(OPCODE.text, '', { length: MAX_BODY_BYTES + 1 }), codes: [1009] }),
]

const CODE_OF_FAULT = { not_json: 1007, bad_envelope: 1008, message_too_large: 1009 }

export class Talks {
  #random
  /** All that were given out: what comes back to somebody else is one of them. */
  #issued = new Set()

  constructor(random) {
    this.#random = random
  }

  next() {
    const kind = this.#random.between(0, 9)
    const talk = kind < 6 ? this.#requests() : this.#frames()
    const { pieces, ...rest } = kind === 5 || kind === 9 ? this.#wounded(talk) : talk
    return {
      ...rest,
      issued: this.#issued,
      bytes: Buffer.concat(pieces),
      sizes: Array.from({ length: 8 }, () => this.#random.pick(SIZES)),
    }
  }

  #token() {
    const token = `t${this.#random.between(0, 2 ** 32).toString(36)}`
    this.#issued.add(token)
    return token
  }

  #requests() {
    const count = this.#random.between(1, 6)
    const exchanges = []
    for (let left = count; left > 0; left--) {
      const exchange = makeExchange(this.#random, this.#token(), left === 1)
      exchanges.push(exchange)
      if (exchange.isDrastic) break
    }
    return {
      way: 'http',
      pieces: exchanges.map(({ bytes }) => bytes),
      exchanges,
      inputs: exchanges.length,
      tokens: tokensOf(exchanges),
    }
  }

  #frames() {
    const random = this.#random
    const pieces = [UPGRADE]
    const requests = []
    const tokens = []
    let codes
    for (let left = random.between(1, 12); left > 0 && codes === undefined; left--) {
      const token = this.#token()
      const body = spellBody(random, token)
      const { fault, request } = meaningOf(body)
      tokens.push(token)
      pieces.push(...this.#spell(body))
      if (fault !== undefined) codes = [CODE_OF_FAULT[fault]]
      else if (request !== undefined) requests.push(request)
    }
    if (codes === undefined && chance(random, 0.5)) {
      const unsound = random.pick(UNSOUND)(random)
      pieces.push(unsound.bytes)
      codes = unsound.codes
    }
    return { way: 'frames', pieces, requests, codes, tokens, inputs: pieces.length - 1 }
  }

  /** A message in one frame or in many, with a ping between. */
  #spell(body) {
    const random = this.#random
    if (chance(random, 0.6) || body.length < 2) return [frame(OPCODE.text, body)]
    const at = random.between(0, body.length)
    const ping = chance(random, 0.5) ? [frame(OPCODE.ping, 'p')] : []
    return [
      frame(OPCODE.text, body.subarray(0, at), { isFinal: false }),
      ...ping,
      frame(OPCODE.continuation, body.subarray(at)),
    ]
  }

  #wounded({ way, pieces, tokens, inputs }) {
    const whole = Buffer.concat(pieces)
    const from = way === 'frames' ? UPGRADE.length : 0
    const hurt = mutate(whole.subarray(from), this.#random, OTHER)
    return { way: `wounded ${way}`, pieces: [whole.subarray(0, from), hurt], tokens, inputs }
  }
}

const tokensOf = (exchanges) => exchanges.map(({ token }) => token)

/** What a frame means: a fault for which it is closed, or a request that is answered. */
function meaningOf(body) {
  const { is, value } = parseLine(body)
  if (body.length <= MAX_BODY_BYTES && is === 'notJson') return { fault: 'not_json' }
  const fault = faultOf(body, MAX_BODY_BYTES)
  if (fault !== undefined) return { fault }
  const isRequest = new Reference(body).shape === 'request'
  return isRequest ? { request: { id: value.id, token: value.params?.token ?? null } } : {}
}
