/**
 * Keeps the headers of an HTTP agent out of what it says: into answers, errors, partials and traces comes no secret.
 *
 * Everything an agent answers is parsed here and cleaned before anybody sees it, its keys too. However deep it is nested,
 * it is walked without recursion.
 */
import { type Redact, redactor, secretsOfHeaders } from '../wire/secrets.ts'

const REDACTED = '[redacted]'

/** Makes of the text of an agent what may be passed on; undefined: it is not JSON. */
export type ReadJson = (text: string) => { readonly json: unknown } | undefined

/** What is sent to an agent with every call. */
interface Sent {
  readonly endpoint: string
  readonly headers?: Readonly<Record<string, string>>
}

export function readerFor({ headers = {}, endpoint }: Sent): ReadJson {
  const secrets = [...secretsOfHeaders(headers), ...secretsOfUrl(endpoint)]
  if (secrets.length === 0) return parse
  const redact = redactor(secrets, REDACTED)
  return (text) => {
    const parsed = parse(text)
    // With a backslash anything can be spelled otherwise.
    if (parsed === undefined || (!text.includes('\\') && redact(text) === text)) return parsed
    return { json: clean(parsed.json, redact) }
  }
}

function parse(text: string): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

const SECRET_PARAMETER = /key|token|secret|pass|sig|auth|credential/i

/** Credentials in the address of the agent itself. */
function secretsOfUrl(endpoint: string): string[] {
  const { password, searchParams } = new URL(endpoint)
  const parameters = [...searchParams].filter(([name]) => SECRET_PARAMETER.test(name))
  return [password, ...parameters.map(([, value]) => value)].filter((value) => value !== '')
}

/** The tree is ours: it is changed where it stands. */
function clean(json: unknown, redact: Redact): unknown {
  if (typeof json === 'string') return redact(json)
  const waiting: unknown[] = [json]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (typeof node !== 'object' || node === null) continue
    for (const [key, value] of Object.entries(node)) {
      const cleanValue = typeof value === 'string' ? redact(value) : value
      const cleanKey = Array.isArray(node) ? key : redact(key)
      if (cleanKey !== key) delete (node as Record<string, unknown>)[key]
      if (cleanKey !== key || cleanValue !== value) set(node, cleanKey, cleanValue)
      if (typeof value === 'object') waiting.push(value)
    }
  }
  return json
}

/** A key of the wire may be `__proto__`, which an assignment would swallow. */
function set(node: object, key: string, value: unknown): void {
  Object.defineProperty(node, key, { value, configurable: true, enumerable: true, writable: true })
}
