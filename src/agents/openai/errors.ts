/**
 * What the user reads when the endpoint fails, as the seed words it.
 *
 * It decides wording only; whether to retry is retry.ts's. Invariant: the URL shown has no query and no secret.
 */
import { type Redact, toLine } from './redact.ts'

/** An HTTP answer that is not the one that was asked for. */
export interface HttpFailure {
  readonly status: number
  /** The endpoint's own message, as far as it gave one. */
  readonly detail: string | undefined
}

/** The message for a status; `detail` is shown only where the seed has no wording of its own. */
export function httpMessage(url: string, failure: HttpFailure): string {
  const { status, detail } = failure
  if (status === 401 || status === 403) {
    return `Authentication error (HTTP ${status}) calling ${url}. Check your OPENAI_API_KEY.`
  }
  if (status === 429) return `Rate limit exceeded (HTTP 429) calling ${url}. Please retry later.`
  if (status >= 500) return `Server error (HTTP ${status}) from ${url}.`
  return `HTTP error (${status}) from ${url}.${detail ? ` ${detail}` : ''}`
}

/** The message for an endpoint that could not be reached or went silent. */
export function networkMessage(url: string, message: string): string {
  return `Network error connecting to ${url}: ${message}`
}

/** The innermost reason of an error, in one line. */
export function reasonOf(error: unknown, redact: Redact): string {
  let inner = error
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause !== undefined; depth++) inner = inner.cause
  const named = inner instanceof AggregateError && inner.errors[0] instanceof Error ? inner.errors[0] : inner
  const text = named instanceof Error ? named.message || codeOf(named) || named.name : String(named)
  return toLine(redact(text))
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

const maxPlainChars = 500

/** The endpoint's own message in the body of a refusal: `error.message`, `error`, `message`, or short plain text. */
export function detailOf(body: string, redact: Redact): string | undefined {
  const found = messageIn(parse(body)) ?? plain(body)
  return found === undefined ? undefined : toLine(redact(found))
}

/** The message of an error object as endpoints nest it. */
export function messageIn(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined
  const error = value['error']
  if (typeof error === 'string') return error || undefined
  const message = isRecord(error) ? error['message'] : value['message']
  return typeof message === 'string' && message !== '' ? message : undefined
}

function plain(body: string): string | undefined {
  const text = body.trim()
  return text === '' || text.length > maxPlainChars || /^[<{[]/.test(text) ? undefined : text
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
