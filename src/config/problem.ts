/**
 * What is wrong with a configuration, as a value: where it stands, what was found there and what is allowed.
 *
 * Nothing here reads a file or knows the schema. A problem never holds a secret: `found` says the kind of a value, not
 * the value, wherever people put credentials (`env`, `headers`, `args`, `tokens`, `token`, `url`).
 */

export type Path = readonly (string | number)[]

/** An error stops the bus; a warning is a risk; a note is advice. Only errors decide the exit code. */
export type Severity = 'error' | 'warning' | 'note'

export interface Problem {
  readonly severity: Severity
  readonly file: string
  /** From 1; 0 when the problem is the file as a whole. */
  readonly line: number
  readonly column: number
  /** As in `pools[0].env.API_KEY`; empty for the whole file. */
  readonly path: string
  readonly found: string
  readonly allowed: string
  readonly suggestion?: string
}

/** What a check reports before its place in the file is known. */
export interface Finding {
  readonly severity?: Severity
  readonly path: Path
  /** Whether the key or the value is at fault: it decides where the problem points. */
  readonly at?: 'key' | 'value'
  readonly found: string
  readonly allowed: string
  readonly suggestion?: string
}

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/
const SECRET_PLACES = new Set<string | number>(['env', 'headers', 'args', 'tokens', 'token', 'url'])
/** Credentials in a URL. */
const USERINFO = /\/\/[^/@\s]*@/
const MAX_SHOWN_CHARS = 60

/** A suggestion that can be pasted into a shell from its second word on. */
export function toRun(command: string, file: string): string {
  return `run ${command} ${/^[\w./~@%+=:,-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`}`
}

/** `['pools', 0, 'id']` as `pools[0].id`. */
export function showPath(path: Path): string {
  let shown = ''
  for (const step of path) {
    if (typeof step === 'number') shown += `[${step}]`
    else if (!PLAIN_KEY.test(step)) shown += `[${quote(step)}]`
    else shown += shown === '' ? step : `.${step}`
  }
  return shown
}

/** A value as people may see it: short, escaped, and only its kind where it may be a secret. */
export function showValue(value: unknown, path: Path): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  if (path.some((step) => SECRET_PLACES.has(step))) return `a ${typeof value}`
  return typeof value === 'string' ? quote(value.replace(USERINFO, '//***@')) : String(value)
}

/** A string in quotes, with everything a terminal could act on escaped. */
export function quote(text: string): string {
  const cut = text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}...` : text
  return JSON.stringify(cut).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeUnit)
}

/** The order of the file. */
export function byPlace(a: Problem, b: Problem): number {
  return a.line - b.line || a.column - b.column
}

/** `a, b or c`. */
export function listOf(words: readonly string[], last = 'or'): string {
  if (words.length < 2) return words[0] ?? ''
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`
}

function escapeUnit(char: string): string {
  return `\\u{${char.codePointAt(0)!.toString(16)}}`
}
