/**
 * The agent's configuration: environment variables in, one frozen object or every problem at once out.
 *
 * It opens nothing and asks nobody. An empty variable counts as unset. Invariant: no value of a variable that
 * may hold a secret is ever part of a problem's text.
 */

export interface Config {
  /** Without a slash at its end and without a query. */
  readonly baseUrl: string
  /** The query of the base URL, with its question mark, or empty. */
  readonly baseQuery: string
  readonly apiKey: string
  readonly model: string
  readonly systemPrompt: string | undefined
  readonly maxTokens: number | undefined
  readonly temperature: number | undefined
  /** Set for Azure only. */
  readonly apiVersion: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly vision: boolean
  readonly maxRetries: number
  /** The longest silence of the endpoint. */
  readonly timeoutMs: number
  readonly sessionDir: string | undefined
}

export type Environment = Readonly<Record<string, string | undefined>>

/** What `readConfig` found: a configuration, or one line per bad variable. */
export type ConfigResult = { readonly config: Config } | { readonly problems: readonly string[] }

/** Thrown by a reader; its text follows the variable's name. */
class BadValue extends Error {}

type Reader<T> = (value: string) => T

/** Reads the variables the agent knows. */
export function readConfig(env: Environment): ConfigResult {
  const problems: string[] = []
  const read = <T, D>(name: string, reader: Reader<T>, fallback: D): T | D => {
    const value = env[name]
    if (value === undefined || value === '') return fallback
    try {
      return reader(value)
    } catch (error) {
      if (!(error instanceof BadValue)) throw error
      problems.push(`${name} ${error.message}`)
      return fallback
    }
  }
  const base = read('OPENAI_BASE_URL', readBaseUrl, new URL('https://api.openai.com/v1'))
  const config: Config = {
    baseUrl: `${base.origin}${base.pathname.replace(/\/+$/, '')}`,
    baseQuery: base.search,
    apiKey: read('OPENAI_API_KEY', readKey, ''),
    model: read('OPENAI_MODEL', readWord, 'gpt-4o'),
    systemPrompt: read('OPENAI_SYSTEM_PROMPT', (value) => value, undefined),
    maxTokens: read('OPENAI_MAX_TOKENS', wholeNumber(1, Number.MAX_SAFE_INTEGER), undefined),
    temperature: read('OPENAI_TEMPERATURE', readTemperature, undefined),
    apiVersion: read('OPENAI_API_VERSION', readWord, undefined),
    headers: read('OPENAI_HEADERS', readHeaders, {}),
    vision: read('OPENAI_VISION', readSwitch, false),
    maxRetries: read('OPENAI_MAX_RETRIES', wholeNumber(0, 100), 2),
    timeoutMs: read('OPENAI_TIMEOUT_SEC', readSeconds, 600_000),
    sessionDir: read('OPENAI_SESSION_DIR', readPath, undefined),
  }
  return problems.length > 0 ? { problems } : { config: Object.freeze(config) }
}

function readBaseUrl(value: string): URL {
  if (!URL.canParse(value.trim())) throw new BadValue('is not a URL; write it like https://api.openai.com/v1')
  const url = new URL(value.trim())
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new BadValue('must begin with http:// or https://')
  if (url.username || url.password) throw new BadValue('must not hold a user or password; use OPENAI_API_KEY')
  return url
}

function readKey(value: string): string {
  if (!fitsHeader(value))
    throw new BadValue('holds a character that no HTTP header can carry (a line break?); it is not shown')
  return value
}

function readWord(value: string): string {
  if (value.trim() === '') throw new BadValue('is blank; leave it out or name one')
  return value.trim()
}

function readPath(value: string): string {
  if (value.trim() === '' || value.includes('\0')) throw new BadValue('is no path; name a folder')
  return value
}

const decimal = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i

function readNumber(value: string): number {
  const number = decimal.test(value.trim()) ? Number(value) : Number.NaN
  if (!Number.isFinite(number)) throw new BadValue(`is ${JSON.stringify(clip(value))}, not a number`)
  return number
}

function wholeNumber(least: number, most: number): Reader<number> {
  return (value) => {
    const number = readNumber(value)
    if (Number.isInteger(number) && number >= least && number <= most) return number
    const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`
    throw new BadValue(`is ${clip(value)}; it must be a whole number, ${range}`)
  }
}

function readTemperature(value: string): number {
  const number = readNumber(value)
  if (number < 0) throw new BadValue(`is ${clip(value)}; it must be 0 or more`)
  return number
}

/** The longest time a Node timer can wait. */
const maxTimerMs = 2 ** 31 - 1

function readSeconds(value: string): number {
  const timeoutMs = readNumber(value) * 1000
  if (timeoutMs >= 1 && timeoutMs <= maxTimerMs) return Math.round(timeoutMs)
  throw new BadValue(
    `is ${clip(value)}; it must be a number of seconds above 0 and at most ${Math.floor(maxTimerMs / 1000)}`,
  )
}

const switches: Readonly<Record<string, boolean>> = { '1': true, true: true, '0': false, false: false }

function readSwitch(value: string): boolean {
  const on = switches[value.trim().toLowerCase()]
  if (on === undefined) throw new BadValue(`is ${JSON.stringify(clip(value))}; it must be 1, true, 0 or false`)
  return on
}

function readHeaders(value: string): Record<string, string> {
  const headers = parseJson(value)
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw new BadValue('must be a JSON object of header names and values, like {"X-Team":"docs"}')
  }
  for (const [name, content] of Object.entries(headers)) {
    if (!headerName.test(name))
      throw new BadValue(`has the header name ${JSON.stringify(clip(name))}, which HTTP does not allow`)
    if (typeof content !== 'string' || !fitsHeader(content)) {
      throw new BadValue(`has a value for ${JSON.stringify(clip(name))} that is no string a header can carry`)
    }
  }
  return headers as Record<string, string>
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

function fitsHeader(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

function parseJson(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}

function clip(value: string): string {
  return value.length > 40 ? `${value.slice(0, 40)}…` : value
}
