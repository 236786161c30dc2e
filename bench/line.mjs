/**
 * The one layout of every line the benchmarks send, shared by load generator and worker.
 *
 * A request and its answer have the same length and differ in one fixed stretch of bytes, so the worker answers by overwriting that
 * stretch and the load generator finds the id at a fixed place: neither parses JSON. Lengths count the newline.
 */
const HEAD = '{"jsonrpc":"2.0","id":'
/** What is asked for: anything, or a tool by its name. */
const ASKS = {
  echo: ',"method":"echo","params":{"p":',
  tool: ',"method":"tools/call","params":{"name":"read_file","p":',
}
const ANSWERS = ',"result":{"by":"'
const FIRST_ID = 1_000_000_000

export const NEWLINE = 10
export const ID_AT = HEAD.length
export const ID_DIGITS = String(FIRST_ID).length
export const SESSION_DIGITS = 8
export const PATCH_AT = ID_AT + ID_DIGITS
/** What the worker writes over what was asked: a result in place of method and params. */
export const patchOf = (asks = 'echo') =>
  Buffer.from(`${ANSWERS}${'e'.repeat(ASKS[asks].length - ANSWERS.length - '","p":'.length)}","p":`)

/** Ids have a fixed number of digits and are distinct among all clients of a run, so that the bus has no reason to alias one. */
export const idOf = (client, slot, slots) => FIRST_ID + client * slots + slot
export const slotOf = (id, client, slots) => id - FIRST_ID - client * slots

/** Payloads of an exact length; `flat` is the cheapest to scan, `nested` the dearest. */
const PAYLOADS = {
  flat: (bytes) => `"${'x'.repeat(bytes - 2)}"`,
  /** Source code inside a string: an escape every few words. */
  text: (bytes) => {
    const row = 'const answer = \\"forty two\\" // as ever\\n'
    return `"${row.repeat(Math.ceil(bytes / row.length)).slice(0, Math.floor((bytes - 2) / row.length) * row.length)}`
      .padEnd(bytes - 1, 'x')
      .concat('"')
  },
  /** A list of small objects: many quotes, commas and brackets. */
  nested: (bytes) => {
    const item = '{"path":"src/a.ts","line":42,"tags":["a","b"],"ok":true},'
    const room = bytes - '[""]'.length
    const items = item.repeat(Math.floor(room / item.length))
    return `[${items}"${'x'.repeat(room - items.length)}"]`
  },
}

/** The text after the id: the same for every line of one shape, except for the session. */
function tailOf({ lineBytes, shape, session, asks = 'echo' }) {
  const end = `}${session === undefined ? '' : `,"sessionId":"s${String(session).padStart(SESSION_DIGITS, '0')}"`}}\n`
  const room = lineBytes - PATCH_AT - ASKS[asks].length - end.length
  if (room < 8)
    throw new Error(`a line of ${lineBytes} bytes has no room for the layout; use at least ${lineBytes - room + 8}`)
  return `${ASKS[asks]}${PAYLOADS[shape](room)}${end}`
}

/** Head with id, and tail: `head` differs per line, `tail` may be shared by all lines without a session. */
export const headBytes = (id) => Buffer.from(`${HEAD}${id}`)
export const tailBytes = (layout) => Buffer.from(tailOf(layout))
