/**
 * What a message is, decided slowly and simply: the judge of the envelope reader. It shares no code with it.
 */
export type ReferenceShape = 'notJson' | 'bad' | 'request' | 'notification' | 'response'

export interface Reference {
  readonly shape: ReferenceShape
  readonly id?: unknown
  readonly idRaw?: string
  readonly method?: unknown
  readonly sessionId?: unknown
}

interface Member {
  readonly key: string
  readonly raw: string
  readonly value: unknown
}

const MAX_RAW_BYTES = 1024 + 2
const ONCE = new Set(['id', 'method', 'sessionId', 'pool', 'params', 'result', 'error'])

export function judge(bytes: Buffer): Reference {
  const text = decode(bytes)
  if (text === undefined || !isJson(text)) return { shape: 'notJson' }
  const trimmed = text.trim()
  if (!trimmed.startsWith('{')) return { shape: 'bad' }
  const members = membersOf(trimmed)
  const byKey = new Map(members.map((member) => [member.key, member]))
  const known = members.filter(({ key }) => ONCE.has(key))
  const isTwice = new Set(known.map(({ key }) => key)).size < known.length
  const params = byKey.get('params')?.raw ?? ''
  const inner = params.startsWith('{') ? membersOf(params).filter(({ key }) => key === 'sessionId') : []
  const shape = isTwice || inner.length > 1 ? 'bad' : shapeOf(byKey)
  const id = byKey.get('id')
  return {
    shape,
    id: id?.value,
    ...(id === undefined ? {} : { idRaw: id.raw }),
    method: byKey.get('method')?.value,
    sessionId: byKey.get('sessionId')?.value,
  }
}

function shapeOf(byKey: ReadonlyMap<string, Member>): ReferenceShape {
  const session = byKey.get('sessionId')
  if (session !== undefined && !(typeof session.value === 'string' && size(session.raw) <= MAX_RAW_BYTES)) return 'bad'
  const pool = byKey.get('pool')
  if (pool !== undefined && typeof pool.value !== 'string') return 'bad'
  const [id, method, result, error] = ['id', 'method', 'result', 'error'].map((key) => byKey.get(key))
  const isSet = (member: Member | undefined): boolean => member !== undefined && member.value !== null
  if (method !== undefined) {
    if (typeof method.value !== 'string' || isSet(result) || isSet(error)) return 'bad'
    if (id === undefined) return 'notification'
    return isId(id) ? 'request' : 'bad'
  }
  if (result === undefined && error === undefined) return 'bad'
  if (id === undefined) return 'bad'
  return isId(id) || (id.value === null && isSet(error)) ? 'response' : 'bad'
}

function isId({ raw, value }: Member): boolean {
  return (typeof value === 'string' || typeof value === 'number') && size(raw) <= MAX_RAW_BYTES
}

function size(raw: string): number {
  return Buffer.byteLength(raw)
}

function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The members of an object in valid JSON, in order, with those that stand twice. */
function membersOf(text: string): Member[] {
  const members: Member[] = []
  let at = skipSpace(text, 1)
  while (text[at] !== '}') {
    const keyEnd = skipString(text, at)
    const key = JSON.parse(text.slice(at, keyEnd)) as string
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const end = skipValue(text, start)
    const raw = text.slice(start, end)
    members.push({ key, raw, value: JSON.parse(raw) })
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return members
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (/[ \t\r\n]/.test(text[at] ?? '')) at++
  return at
}

function skipString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
}

function skipValue(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const sign = text[at]!
    if (sign === '"') at = skipString(text, at) - 1
    else if (sign === '{' || sign === '[') depth++
    else if ((sign === '}' || sign === ']') && depth > 0) depth--
    else if (depth === 0 && /[,}\] \t\r\n]/.test(sign)) return at
    if (depth === 0 && /[}\]"]/.test(sign)) return at + 1
  }
  return text.length
}
