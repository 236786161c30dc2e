/** One connection to the web door from its first byte to its end, and a judgement of what came back. */
import { connect } from 'node:net'
import { eventually } from '../../chaos/stage/waiting.mjs'
import { FrameReader } from './frames.mjs'
import { HttpReader } from './http-reader.mjs'

const TIMEOUT_MS = 30_000
const HEAD_END = '\r\n\r\n'
/** All that a request to this door can be answered with. */
const STATUSES = new Set([
  101, 200, 202, 204, 400, 403, 404, 405, 406, 408, 413, 415, 417, 426, 431, 501, 502, 503, 504,
])
const CLOSE_CODES = new Set([1000, 1001, 1002, 1003, 1005, 1007, 1008, 1009])

/** The other end of a connection: everything that it says, and how it ends. */
class Hearing {
  bytes = 0
  isClosed = false
  error
  constructor(socket, take) {
    socket.on('data', (chunk) => {
      this.bytes += chunk.length
      take(chunk)
    })
    socket.once('end', () => (this.isClosed = true))
    socket.once('close', () => (this.isClosed = true))
    socket.on('error', (error) => (this.error = error))
  }
}

async function write(socket, { bytes, sizes }) {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = Math.max(sizes[turn % sizes.length], bytes.length >> 6)
    const isTaken = socket.write(bytes.subarray(at, at + size))
    at += size
    if (!isTaken || size < 100) await new Promise((resolve) => setImmediate(resolve))
  }
}

function bodyOf({ body }) {
  try {
    return body.length === 0 ? undefined : JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

function judgeAnswer(answer, { expected, token }) {
  const said = bodyOf(answer)
  const { status, reason, ids } = expected
  const got = `${answer.status} ${said?.error?.data?.reason ?? ''} ${JSON.stringify(said?.id)}`
  const meant = `${status} ${reason ?? ''} ${ids === undefined ? '' : JSON.stringify(ids)} (${token})`
  if (answer.status !== status) return `status: ${got} where ${meant} is meant`
  if (reason !== undefined && said?.error?.data?.reason !== reason) return `reason: ${got} where ${meant} is meant`
  if (ids !== undefined && !ids.some((id) => id === said?.id)) return `id: ${got} where ${meant} is meant`
  const given = said?.result?.token ?? null
  if (expected.token !== undefined && JSON.stringify(given) !== JSON.stringify(expected.token))
    return `misdelivered: ${JSON.stringify(given)} where ${meant} is meant`
  if (answer.headers.get('x-content-type-options') !== 'nosniff') return `headers: ${got} without nosniff`
  return undefined
}

/** In order, until one of the answers says that it is the last. */
function judgeRequests({ exchanges }, reader, heard) {
  for (const [at, exchange] of exchanges.entries()) {
    const answer = reader.answers[at]
    // Whoever sends a body that is not read may lose the answer with the connection.
    const mayBeLost = heard.error?.code === 'ECONNRESET' || heard.error?.code === 'EPIPE'
    if (answer === undefined)
      return mayBeLost ? undefined : `unanswered: ${exchange.token} (${JSON.stringify(exchange.expected)})`
    const wrong = judgeAnswer(answer, exchange)
    if (wrong !== undefined) return wrong
    if (/close/i.test(answer.headers.get('connection') ?? '')) {
      const more = reader.answers.length - at - 1
      return more > 0 ? `doubled: ${more} answers behind the last` : undefined
    }
  }
  return reader.answers.length > exchanges.length ? 'doubled: more answers than requests' : undefined
}

/** A token in what was said that was given to somebody else; a wound makes new ones, but none of those. */
function foreignIn(texts, { tokens, issued }) {
  const own = new Set(tokens)
  const named = texts.flatMap((text) => [...text.matchAll(/"token":"(t\w+)"/g)]).map(([, token]) => token)
  const foreign = named.find((token) => !own.has(token) && issued.has(token))
  return foreign === undefined ? undefined : `misdelivered: ${foreign} at ${tokens}`
}

function judgeWoundedRequests(talk, reader) {
  const odd = reader.answers.find(({ status }) => !STATUSES.has(status))
  if (odd !== undefined) return `status: ${odd.status}`
  const texts = reader.answers.map(({ body }) => body.toString())
  return foreignIn(texts, talk)
}

async function visitHttp(address, talk, timeoutMs) {
  const socket = connect({ ...address, allowHalfOpen: true })
  const reader = new HttpReader()
  const heard = new Hearing(socket, (chunk) => reader.take(chunk))
  await write(socket, talk)
  const isWounded = talk.exchanges === undefined
  if (isWounded) socket.end()
  await eventually(() => heard.isClosed, timeoutMs, 2)
  socket.destroy()
  if (!heard.isClosed) return 'kept: the connection stays open after its end'
  if (reader.garbage !== undefined && !/^HTTP\/1.1 101/.test(reader.garbage)) return `garbage: ${reader.garbage}`
  return isWounded ? judgeWoundedRequests(talk, reader) : judgeRequests(talk, reader, heard)
}

function judgeFrames({ requests, codes, tokens }, reader, heard) {
  const said = reader.texts.map((text) => JSON.parse(text))
  const answers = said.filter(({ result }) => result !== undefined)
  const open = requests.map(({ id, token }) => JSON.stringify([id, token]))
  for (const { id, result } of answers) {
    const at = open.indexOf(JSON.stringify([id, result.token ?? null]))
    if (at === -1) return `misdelivered: ${JSON.stringify({ id, result })} of ${tokens.join()}`
    open.splice(at, 1)
  }
  if (codes === undefined) return open.length > 0 ? `unanswered: ${open[0]}` : undefined
  if (heard.error !== undefined && reader.closed === undefined) return undefined
  return codes.includes(reader.closed?.code) ? undefined : `code: ${reader.closed?.code} where ${codes} is meant`
}

function judgeWoundedFrames(talk, reader) {
  if (reader.closed !== undefined && !CLOSE_CODES.has(reader.closed.code)) return `code: ${reader.closed.code}`
  return foreignIn(reader.texts, talk)
}

async function visitFrames(address, talk, timeoutMs) {
  const socket = connect({ ...address, allowHalfOpen: true })
  const reader = new FrameReader()
  let head = Buffer.alloc(0)
  let isUp = false
  const heard = new Hearing(socket, (chunk) => {
    if (isUp) return reader.take(chunk)
    head = Buffer.concat([head, chunk])
    const end = head.indexOf(HEAD_END)
    if (end === -1) return
    isUp = true
    reader.take(head.subarray(end + HEAD_END.length))
  })
  await write(socket, talk)
  const isWounded = talk.requests === undefined
  if (isWounded) socket.end()
  const isServed = () =>
    heard.isClosed ||
    reader.closed !== undefined ||
    (!isWounded && talk.codes === undefined && reader.texts.length >= talk.requests.length)
  await eventually(isServed, timeoutMs, 2)
  socket.end()
  await eventually(() => heard.isClosed, timeoutMs, 2)
  socket.destroy()
  if (!/^HTTP\/1\.1 101 /.test(head.toString('latin1'))) return `upgrade: ${head.toString('latin1').slice(0, 80)}`
  if (!heard.isClosed) return 'kept: the connection stays open after its end'
  if (reader.garbage !== undefined) return `garbage: ${reader.garbage}`
  return isWounded ? judgeWoundedFrames(talk, reader) : judgeFrames(talk, reader, heard)
}

/** Gives a finding, or undefined. */
export function visit(address, talk, timeoutMs = TIMEOUT_MS) {
  return talk.way.endsWith('http') ? visitHttp(address, talk, timeoutMs) : visitFrames(address, talk, timeoutMs)
}
