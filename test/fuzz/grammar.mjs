/**
 * Spells messages: JSON text in every spelling there is, with the routing fields of the bus in their places and in others.
 *
 * Everything it makes is well-formed JSON; what is broken is made of it by mutation.
 */
const METHODS = [
  'm',
  'ping',
  'initialize',
  'session/new',
  'session/prompt',
  'session/cancel',
  'tools/call',
  'tools/list',
]
const MORE_METHODS = [
  'notifications/cancelled',
  '$/cancel_request',
  'plain::help',
  'bus::help',
  'bus::',
  'session/load',
  '',
]
const SESSIONS = ['s1', 's2', 'S\\u0041', 'ж', '', '\\ud800', 'a b', '😀']
const META = 'io.modelcontextprotocol'
const PARAM_KEYS = ['sessionId', 'requestId', 'progressToken', 'protocolVersion', 'uri', 'level', 'taskId', 'cursor']
const MORE_PARAM_KEYS = ['agentId', 'serverId', 'elicitationId', 'requestState', 'update', 'params', '_meta', 'x']
const META_KEYS = ['progressToken', 'stdio-bus/agentId', `${META}/protocolVersion`, `${META}/logLevel`]
const MORE_META_KEYS = [`${META}/subscriptionId`, `${META}/related-task`, 'id', 'taskId']
const RESULT_KEYS = [
  'sessionId',
  'protocolVersion',
  'nextCursor',
  'taskId',
  'task',
  'requestState',
  '_meta',
  'sessions',
]
const LOOKALIKES = ['i', 'idd', 'Id', 'methof', 'metho', '__proto__', '', 'trace_id', 'agentId', 'partial', 'jsonrpc']
const TOP_KEYS = ['id', 'method', 'sessionId', 'pool', 'params', 'result', 'error']
const INSIDE = new Map([
  ['params', 1],
  ['update', 1],
  ['_meta', 2],
  [`${META}/related-task`, 2],
  ['task', 3],
  ['result', 3],
])
const KEYS_INSIDE = [LOOKALIKES, [...PARAM_KEYS, ...MORE_PARAM_KEYS], [...META_KEYS, ...MORE_META_KEYS], RESULT_KEYS]

const NUMBERS = ['0', '-0', '1', '7', '42', '-1', '0.0', '1e5', '1E+5', '-2.50e-07', '2147483648', '-2147483649']
const MORE_NUMBERS = ['4294967296', '-4294967297', '999999999999999', '-999999999999999', '1000000000000000']
const HUGE_NUMBERS = ['9007199254740991', '9007199254740993', '1e400', '-1e-400', `1${'0'.repeat(40)}`, '0.1e-0']
const ALL_NUMBERS = [...NUMBERS, ...MORE_NUMBERS, ...HUGE_NUMBERS]
const PIECES = [
  'a',
  'id',
  '\\"',
  '\\\\',
  '\\/',
  '\\n',
  '\\u0000',
  '\\u00e9',
  '\\ud83d\\ude00',
  '\\udc00',
  'é',
  '漢',
  '😀',
]
const MORE_PIECES = [
  '\u007f',
  '\u0080',
  '\u07ff',
  '\u0800',
  '\uffff',
  '\u{10000}',
  '\u{10ffff}',
  ' ',
  '{',
  '}',
  '[,]',
  ':',
]
const ALL_PIECES = [...PIECES, ...MORE_PIECES]
const GAPS = [' ', '\t', '\r', '  ', ' \t ']
/** Around the widths of vectors and the bound on ids. */
const LENGTHS = [15, 16, 17, 31, 32, 33, 63, 64, 65, 511, 512, 513, 520, 1022, 1023, 1024, 1025, 1026]

export const chance = (random, odds) => random.fraction() < odds

const gap = (random, isWide) => (isWide && chance(random, 0.4) ? random.pick(GAPS) : '')
const escapeUnit = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

function spellText(random) {
  const kind = random.between(0, 9)
  if (kind < 5) return `"${random.pick(SESSIONS)}"`
  if (kind === 5) return `"${'x'.repeat(random.pick(LENGTHS) + random.between(-2, 2))}"`
  let text = kind === 6 ? 'y'.repeat(random.between(0, 40)) : ''
  for (let pieces = random.between(0, 9); pieces > 0; pieces--) text += random.pick(ALL_PIECES)
  return `"${text}"`
}

function spellNumber(random) {
  const kind = random.between(0, 2)
  if (kind === 0) return String(random.between(0, 999))
  return kind === 1 ? random.pick(ALL_NUMBERS) : String(random.between(-(2 ** 40), 2 ** 40))
}

function spellKey(random, key) {
  if (!chance(random, 0.03)) return `"${key}"`
  return `"${[...key].map((char) => (char.length === 1 && chance(random, 0.3) ? escapeUnit(char) : char)).join('')}"`
}

function spellScalar(random) {
  const kind = random.between(0, 6)
  if (kind < 3) return spellText(random)
  return kind < 5 ? spellNumber(random) : random.pick(['true', 'false', 'null'])
}

function spellValue(random, depth, keys) {
  if (depth <= 0 || chance(random, 0.5)) return spellScalar(random)
  if (chance(random, 0.25)) return spellArray(random, depth)
  return spellObject(random, depth, keys)
}

function spellArray(random, depth) {
  const items = Array.from({ length: random.between(0, 4) }, () => spellValue(random, depth - 1, LOOKALIKES))
  return `[${items.join(',')}]`
}

function spellObject(random, depth, keys) {
  const chosen = Array.from({ length: random.between(0, 4) }, () =>
    chance(random, 0.85) ? random.pick(keys) : random.pick(TOP_KEYS),
  )
  return spellEntries(
    random,
    chosen.map((key) => [key, spellValue(random, depth - 1, KEYS_INSIDE[INSIDE.get(key) ?? 0])]),
  )
}

function spellEntries(random, entries) {
  const isWide = chance(random, 0.15)
  const inside = entries.map(([key, value]) => {
    const spelled = spellKey(random, key)
    return `${gap(random, isWide)}${spelled}${gap(random, isWide)}:${gap(random, isWide)}${value}${gap(random, isWide)}`
  })
  return `{${inside.join(',')}}`
}

/** What each field of a message usually holds; `pools` are those that may be named. */
const TYPICAL = {
  id: (random) => (chance(random, 0.6) ? spellNumber(random) : spellText(random)),
  method: (random) => `"${random.pick(chance(random, 0.8) ? METHODS : MORE_METHODS)}"`,
  sessionId: (random) => `"${random.pick(SESSIONS)}"`,
  pool: (random) => `"${random.pick(['plain', 'auto', 'nosuch', 'pl\\u0061in'])}"`,
  params: (random) => spellObject(random, 3, KEYS_INSIDE[1]),
  result: (random) => spellValue(random, 3, RESULT_KEYS),
  error: (random) => `{"code":${random.between(-32700, 5)},"message":"no"}`,
}

function fieldsOfKind(random) {
  const kind = random.between(0, 9)
  if (kind < 5) return ['id', 'method', 'params']
  if (kind < 7) return ['method', 'params']
  return kind < 9 ? ['id', random.pick(['result', 'error'])] : TOP_KEYS.filter(() => chance(random, 0.4))
}

/** A message as clients send them, now and then with something odd about it. `oddity` is how often, from 0 to 1. */
export function spellMessage(random, oddity = 0.12) {
  const keys = fieldsOfKind(random)
  if (chance(random, 0.5)) keys.unshift('jsonrpc')
  if (chance(random, 0.15)) keys.push('sessionId')
  if (chance(random, 0.08)) keys.push('pool')
  if (chance(random, oddity)) keys.push(random.pick([...TOP_KEYS, ...LOOKALIKES]))
  if (chance(random, 0.2)) keys.reverse()
  const entries = keys.map((key) => {
    if (key === 'jsonrpc') return [key, '"2.0"']
    const isTypical = Object.hasOwn(TYPICAL, key) && !chance(random, oddity / 3)
    return [key, isTypical ? TYPICAL[key](random) : spellValue(random, 3, KEYS_INSIDE[INSIDE.get(key) ?? 0])]
  })
  return spellEntries(random, entries)
}

function spellDeep(random) {
  const depth = random.pick([63, 64, 65, 127, 128, 129, 1000, 20_000])
  const isArray = chance(random, 0.5)
  const [open, close] = isArray ? ['[', ']'] : ['{"params":', '}']
  const deep = `${open.repeat(depth)}${isArray ? '' : '1'}${close.repeat(depth)}`
  return chance(random, 0.5) ? deep : `{"id":1,"method":"m","params":{"x":${deep}}}`
}

/** Any document: mostly messages, now and then something else, deep or around a bound. */
export function spellDocument(random) {
  const kind = random.between(0, 999)
  if (kind < 900) return spellMessage(random)
  if (kind < 990) return spellValue(random, 4, TOP_KEYS)
  if (kind < 999) return `${random.pick(GAPS)}${spellMessage(random)}${random.pick(GAPS)}`
  return spellDeep(random)
}
