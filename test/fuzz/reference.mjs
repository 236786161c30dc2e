/**
 * What a line means, said a second time in the simplest words: by JSON.parse, by the decoder of the platform, and by
 * contract 4.2.2 and 4.3. It shares no code with the bus. Slow, and meant to be.
 */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const ROUTING = ['id', 'method', 'sessionId', 'pool', 'params', 'result', 'error']
const MAX_ID_BYTES = 1024
const STRING = /"(?:[^"\\]|\\.)*"/y
const ATOM = /[^\s,\]}]+/y

/** `notJson`, or `other` than an object, or an `object` with its value. */
export function parseLine(bytes) {
  try {
    const value = JSON.parse(utf8.decode(bytes))
    return { is: typeof value === 'object' && value !== null && !Array.isArray(value) ? 'object' : 'other', value }
  } catch {
    return { is: 'notJson' }
  }
}

/** The end of the value that begins at `at` in a well-formed text. */
function endOfValue(text, at) {
  const isNested = text[at] === '{' || text[at] === '['
  const pattern = text[at] === '"' ? STRING : ATOM
  if (!isNested) return matchEnd(pattern, text, at)
  let depth = 0
  for (let i = at; ; i++) {
    if (text[i] === '"') i = matchEnd(STRING, text, i) - 1
    else if (text[i] === '{' || text[i] === '[') depth++
    else if ((text[i] === '}' || text[i] === ']') && --depth === 0) return i + 1
  }
}

function matchEnd(pattern, text, at) {
  pattern.lastIndex = at
  pattern.test(text)
  return pattern.lastIndex
}

function skip(text, at, characters) {
  while (characters.includes(text[at])) at++
  return at
}

/** The entries of the object at `at`, in order, doubled keys included; offsets are those of the bytes. */
function entriesOf(text, at) {
  const entries = []
  let i = skip(text, at + 1, ' \t\r\n')
  while (text[i] !== '}') {
    const keyEnd = endOfValue(text, i)
    const key = JSON.parse(Buffer.from(text.slice(i, keyEnd), 'latin1').toString())
    const start = skip(text, keyEnd, ' \t\r\n:')
    const end = endOfValue(text, start)
    entries.push({ key, start, end })
    i = skip(text, end, ' \t\r\n,')
  }
  return entries
}

const countOf = (entries, key) => entries.filter((entry) => entry.key === key).length
const lastOf = (entries, key) => entries.findLast((entry) => entry.key === key)

/** A line that is an object, taken apart without losing its spelling. */
export class Reference {
  #text
  #top

  constructor(bytes) {
    this.#text = bytes.toString('latin1')
    this.#top = entriesOf(this.#text, skip(this.#text, 0, ' \t\r\n'))
  }

  /** The place of a field, as every JSON library finds it: the last one counts. */
  find(path) {
    let entries = this.#top
    let found
    for (const [depth, key] of path.entries()) {
      found = lastOf(entries, key)
      if (found === undefined) return undefined
      if (depth < path.length - 1) entries = this.#text[found.start] === '{' ? entriesOf(this.#text, found.start) : []
    }
    return found
  }

  /** The routing fields that stand twice. */
  get doubled() {
    const doubled = ROUTING.filter((key) => countOf(this.#top, key) > 1)
    const isNamedTwice = this.#top.some(
      ({ key, start }) =>
        key === 'params' && this.#text[start] === '{' && countOf(entriesOf(this.#text, start), 'sessionId') > 1,
    )
    return isNamedTwice ? [...doubled, 'params.sessionId'] : doubled
  }

  /** How a field is spelled, one character for each byte; undefined when it is absent. */
  spelling(...path) {
    const found = this.find(path)
    return found && this.#text.slice(found.start, found.end)
  }

  /** The shape of the message (contract 3.5, 4.3). */
  get shape() {
    if (this.doubled.length > 0) return 'bad'
    const [id, method, sessionId, pool, result, error] = ['id', 'method', 'sessionId', 'pool', 'result', 'error'].map(
      (key) => this.spelling(key),
    )
    if (sessionId !== undefined && !isShortString(sessionId)) return 'bad'
    if (pool !== undefined && !pool.startsWith('"')) return 'bad'
    const hasOutcome = (result ?? 'null') !== 'null' || (error ?? 'null') !== 'null'
    if (method === undefined) {
      if ((result ?? error) === undefined || id === undefined) return 'bad'
      return isId(id) || (id === 'null' && (error ?? 'null') !== 'null') ? 'response' : 'bad'
    }
    if (!method.startsWith('"') || hasOutcome) return 'bad'
    return id === undefined ? 'notification' : isId(id) ? 'request' : 'bad'
  }

  /** A client may not name a session in its params that cannot be one (contract 4.2.2). */
  get hasBadParamsSession() {
    const named = this.spelling('params', 'sessionId')
    return named !== undefined && !isShortString(named)
  }
}

function isShortString(spelling) {
  return spelling.startsWith('"') && spelling.length - 2 <= MAX_ID_BYTES
}

export function isId(spelling) {
  return isShortString(spelling) || (/^[-\d]/.test(spelling) && spelling.length <= MAX_ID_BYTES)
}

/** Why the bus must close a client that sends this line, or undefined when it must not. */
export function faultOf(bytes, maxLineBytes) {
  if (bytes.length > maxLineBytes) return 'message_too_large'
  if (/^[ \t\r\n]*$/.test(bytes.toString('latin1'))) return undefined
  const { is } = parseLine(bytes)
  if (is === 'notJson') return 'not_json'
  if (is === 'other') return 'bad_envelope'
  const line = new Reference(bytes)
  const { shape } = line
  const isCall = shape === 'request' || shape === 'notification'
  return shape === 'bad' || (isCall && line.hasBadParamsSession) ? 'bad_envelope' : undefined
}
