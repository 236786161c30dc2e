/**
 * One request at the web door as bytes, and the answer that it must get by contract 10.1 to 10.4 and 10.15.
 *
 * Every part of it is chosen from sound and unsound spellings; which answer is meant is said by the first unsound part in the
 * order in which the door must look.
 */
import { chance } from '../grammar.mjs'
import { mutate } from '../mutate.mjs'
import { faultOf, isId, parseLine, Reference } from '../reference.mjs'

export const MAX_BODY_BYTES = 4096

/** Unsound spellings with the answer that they deserve; everything else is served. */
const refused = (status, reason) => ({ status, reason })
const TARGETS = {
  sound: ['/rpc', '/rpc/', '/rpc/plain', '/rpc/%70lain', '/%72pc', '/rpc?token=x', 'http://localhost/rpc', '/rpc#f'],
  unsound: ['/nowhere', '//rpc', '/rpc/a/b', '/rpc/%ff', '/rpc%2fplain', '/RPC', '/__proto__', '/constructor'],
  answer: refused(404, 'not_found'),
}
const POOLS = {
  unsound: ['/rpc/nope', '/rpc/%2e%2e', '/rpc//', '/rpc/constructor'],
  answer: refused(404, 'unknown_pool'),
}
const METHODS = {
  sound: ['POST'],
  unsound: ['PUT', 'GET', 'DELETE', 'PATCH', 'TRACE'],
  answer: refused(405, 'wrong_method'),
}
const HOSTS = {
  sound: ['localhost', 'LOCALHOST.', '127.0.0.1:1', '[::1]', '[::1]:80', '10.0.0.1'],
  unsound: ['evil', 'localhost.evil', 'localhost, evil', 'localhost@evil', '', '[::1', 'a b', '127.0.0.1.evil:80'],
  answer: refused(403, 'wrong_host'),
}
const ORIGINS = {
  sound: [undefined, undefined, undefined],
  unsound: ['null', 'http://evil', 'http://localhost:1', 'file://', '', 'https://127.0.0.1.evil'],
  answer: refused(403, 'wrong_origin'),
}
const ACCEPTS = {
  sound: [undefined, '*/*', 'application/json', 'Application/JSON;q=0.5, text/html', 'application/*', ''],
  unsound: ['image/png', 'text/plain;application/json', 'json'],
  answer: refused(406, 'not_acceptable'),
}
const TYPES = {
  sound: [
    'application/json',
    'APPLICATION/JSON; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json;x=y',
  ],
  unsound: [undefined, 'text/plain', 'application/json; charset=latin1', 'application/jsonx', 'json', ''],
  answer: refused(415, 'wrong_media_type'),
}
const DOUBLED = [
  'Host: localhost',
  'Authorization: Bearer a\r\nAuthorization: Bearer b',
  'Content-Type: application/json',
]

/** Heads that can be read in two ways, or in none: whoever sends one is told so and let go. */
const UNREADABLE = [
  'Content-Length: 1\r\nContent-Length: 2',
  'Content-Length: -1',
  'Content-Length: 0x10',
  'Content-Length: 1\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked, identity',
  'X-A: b\r\n c',
  'X-A : b',
  'X A: b',
  'X-A: b\0c',
  ': b',
  'X-A',
  'X-A: b\nX-B: c',
]

/** `odd` is how often a part is unsound. */
function choose(random, { sound, unsound, answer }, odd) {
  return chance(random, odd) ? { text: random.pick(unsound), answer } : { text: random.pick(sound) }
}

/** What the door must do with a body. */
export function outcomeOf(body) {
  if (body.length > MAX_BODY_BYTES) return refused(413, 'message_too_large')
  const { is, value } = parseLine(body)
  if (is === 'notJson') return refused(400, 'not_json')
  const reference = is === 'object' ? new Reference(body) : undefined
  const shape = reference?.shape
  const fault = faultOf(body, MAX_BODY_BYTES)
  if (fault !== undefined || shape === 'response') {
    const id = reference?.doubled.includes('id') ? undefined : reference?.spelling('id')
    return { ...refused(400, 'bad_envelope'), ids: [null, ...(id !== undefined && isId(id) ? [value.id] : [])] }
  }
  if (shape === 'notification') return { status: 202 }
  return { status: 200, ids: [value.id], token: value.params?.token ?? null }
}

export function spellBody(random, token) {
  const message = { jsonrpc: '2.0', id: random.pick([1, 'a', 0, -7, 1.5, 'é']), method: 'm', params: { token } }
  const kind = random.between(0, 19)
  if (kind === 0) return Buffer.from(JSON.stringify({ ...message, id: undefined }))
  if (kind === 1) return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { token } }))
  if (kind === 2)
    return Buffer.from(random.pick(['', ' \r\n', '[]', 'null', `[${JSON.stringify(message)}]`, '{}', '{"id":1}']))
  if (kind === 3) return Buffer.from(JSON.stringify(message).padEnd(MAX_BODY_BYTES + random.between(0, 2)))
  const text = JSON.stringify(message, null, random.pick([0, 0, 1, '\t']))
  const laid = Buffer.from(chance(random, 0.3) ? text.replaceAll('\n', '\r\n') : text)
  return kind < 12 ? laid : mutate(laid, random, Buffer.from('{"id":"x","method":"m","params":{"a":"\n"}}'))
}

/** The body as it goes over the line: its length first, or in chunks. */
export function frameBody(random, body) {
  if (chance(random, 0.6)) return { header: `Content-Length: ${body.length}`, bytes: body, isDeclared: true }
  const parts = []
  for (let at = 0; at < body.length; ) {
    const part = body.subarray(at, at + random.pick([1, 3, 50, 1000]))
    const extension = chance(random, 0.1) ? ';a="b"' : ''
    parts.push(Buffer.from(`${part.length.toString(16)}${extension}\r\n`), part, Buffer.from('\r\n'))
    at += part.length
  }
  const trailer = chance(random, 0.1) ? 'Mcp-Session-Id: x\r\nHost: evil\r\n' : ''
  return { header: 'Transfer-Encoding: chunked', bytes: Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]) }
}

function firstOf(...answers) {
  return answers.find((answer) => answer !== undefined)
}

/** A request that asks for `token` back; `isLast`: the connection ends with its answer. */
export function makeExchange(random, token, isLast) {
  const odd = random.pick([0, 0, 0.1, 0.3])
  const isUnknownPool = chance(random, odd / 2)
  const target = isUnknownPool ? { text: random.pick(POOLS.unsound) } : choose(random, TARGETS, odd)
  const method = choose(random, METHODS, odd)
  const host = target.text.startsWith('http:') ? { text: 'other' } : choose(random, HOSTS, odd)
  const origin = choose(random, ORIGINS, odd)
  const accept = choose(random, ACCEPTS, odd)
  const type = choose(random, TYPES, odd)
  const encoded = chance(random, odd / 3)
  const doubled = chance(random, odd / 3) ? random.pick(DOUBLED) : undefined
  const isUnreadable = chance(random, odd / 3)
  const isTooLong = !isUnreadable && chance(random, odd / 6)
  const hasExpectation = chance(random, 0.1)
  const body = spellBody(random, token)
  const framed = frameBody(random, body)
  const isDoubled = doubled !== undefined && (type.text !== undefined || !doubled.startsWith('Content-Type'))
  const expected = firstOf(
    isTooLong ? refused(431, 'bad_envelope') : undefined,
    isUnreadable ? refused(400, 'bad_envelope') : undefined,
    isDoubled ? refused(400, 'bad_envelope') : undefined,
    host.answer,
    origin.answer,
    target.answer,
    method.answer,
    isUnknownPool ? POOLS.answer : undefined,
    accept.answer,
    isDoubled ? undefined : doubledType(doubled, type),
    encoded ? TYPES.answer : undefined,
    outcomeOf(body),
  )
  const lines = [
    `${method.text} ${target.text} HTTP/1.1`,
    `Host: ${host.text}`,
    ...header('Origin', origin.text),
    ...header('Accept', accept.text),
    ...header('Content-Type', type.text),
    ...(encoded ? ['Content-Encoding: gzip'] : []),
    ...(doubled === undefined ? [] : [doubled]),
    ...(hasExpectation ? ['Expect: 100-continue'] : []),
    framed.header,
    ...(isUnreadable ? [random.pick(UNREADABLE)] : []),
    ...(isTooLong ? [`X: ${'x'.repeat(17_000)}`] : []),
    ...(isLast ? ['Connection: close'] : []),
  ]
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  // The parser may stop in the middle of such a head: it cannot be told what it was about.
  const isDrastic = isUnreadable || isTooLong
  return { bytes: Buffer.concat([head, framed.bytes]), expected, token, isDrastic }
}

/** One type more than none is one. */
function doubledType(doubled, type) {
  const isTyped = type.text !== undefined || doubled?.startsWith('Content-Type')
  return type.text === undefined && isTyped ? undefined : type.answer
}

function header(name, value) {
  return value === undefined ? [] : [`${name}: ${value}`]
}
