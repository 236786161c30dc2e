/**
 * Reads TOML as far as people's configuration files go: tables, arrays of tables, dotted and quoted keys, strings of all
 * four kinds, numbers, booleans, lists and inline tables. Dates are kept as text.
 *
 * It throws TomlMistake with the line for what it does not understand, and nothing else; nesting is bounded. What it makes
 * has no prototype, so no key is special.
 */
export type TomlValue = string | number | boolean | TomlValue[] | TomlTable
export interface TomlTable {
  [key: string]: TomlValue
}

export class TomlMistake extends Error {
  override readonly name = 'TomlMistake'
  readonly line: number

  constructor(what: string, line: number) {
    super(`line ${line}: ${what}`)
    this.line = line
  }
}

const MAX_DEPTH = 64
const BARE_KEY = /[A-Za-z0-9_-]+/y
const BLANK = /[ \t]*/y
const BLANK_LINES = /(?:[ \t\r\n]|#[^\n]*)*/y
const REST_OF_LINE = /[ \t]*(?:#[^\n]*)?(?:\r?\n|$)/y
const BARE_VALUE = /[^\s,\]}#]+(?: \d\d:\d\d[^\s,\]}#]*)?/y
const NUMBER = /^[+-]?(?:0x[\da-f_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:e[+-]?\d[\d_]*)?|inf|nan)$/i
const DATE = /^(?:\d{4}-\d\d-\d\d|\d\d:\d\d)/
const ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  t: '\t',
  n: '\n',
  f: '\f',
  r: '\r',
  e: '\u001b',
  '"': '"',
  '\\': '\\',
}

export function parseToml(text: string): TomlTable {
  return new Reader(text.replace(/^\ufeff/, '')).document()
}

const makeTable = (): TomlTable => Object.create(null) as TomlTable

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  document(): TomlTable {
    const root = makeTable()
    let table = root
    for (this.#skip(BLANK_LINES); this.#at < this.#text.length; this.#skip(BLANK_LINES)) {
      if (this.#takes('[[')) table = this.#header(root, ']]')
      else if (this.#takes('[')) table = this.#header(root, ']')
      else this.#assign(table, 0)
      if (!this.#skip(REST_OF_LINE)) this.#fail('something follows where the line should end')
    }
    return root
  }

  #header(root: TomlTable, close: ']' | ']]'): TomlTable {
    const path = this.#keyPath()
    if (!this.#takes(close)) this.#fail(`a table that does not end with ${close}`)
    const last = path.pop()!
    const parent = path.reduce((table, key) => this.#into(table, key), root)
    if (close === ']') return this.#into(parent, last)
    const list = (parent[last] ??= [])
    if (!Array.isArray(list)) return this.#fail(`${last} is a list of tables and something else`)
    const row = makeTable()
    list.push(row)
    return row
  }

  /** The table under a key, which is made; of a list of tables the last. */
  #into(table: TomlTable, key: string): TomlTable {
    const found = (table[key] ??= makeTable())
    const inner = Array.isArray(found) ? found.at(-1) : found
    if (typeof inner === 'object' && !Array.isArray(inner)) return inner
    return this.#fail(`${key} is a table and something else`)
  }

  #assign(table: TomlTable, depth: number): void {
    const path = this.#keyPath()
    if (!this.#takes('=')) this.#fail('a key without "="')
    this.#skip(BLANK)
    const last = path.pop()!
    const parent = path.reduce((inner, key) => this.#into(inner, key), table)
    if (last in parent) this.#fail(`${last} a second time`)
    parent[last] = this.#value(depth)
  }

  #keyPath(): string[] {
    const path: string[] = []
    do {
      this.#skip(BLANK)
      path.push(this.#key())
      this.#skip(BLANK)
    } while (this.#takes('.'))
    return path
  }

  #key(): string {
    if (this.#takes('"')) return this.#basic('"')
    if (this.#takes("'")) return this.#literal("'")
    return this.#match(BARE_KEY) ?? this.#fail('no key')
  }

  #value(depth: number): TomlValue {
    if (depth > MAX_DEPTH) this.#fail(`more than ${MAX_DEPTH} levels of nesting`)
    if (this.#takes('"""')) return this.#basic('"""')
    if (this.#takes("'''")) return this.#literal("'''")
    if (this.#takes('"')) return this.#basic('"')
    if (this.#takes("'")) return this.#literal("'")
    if (this.#takes('[')) return this.#list(depth)
    if (this.#takes('{')) return this.#inlineTable(depth)
    return this.#bare()
  }

  #list(depth: number): TomlValue[] {
    const list: TomlValue[] = []
    for (;;) {
      this.#skip(BLANK_LINES)
      if (this.#takes(']')) return list
      list.push(this.#value(depth + 1))
      this.#skip(BLANK_LINES)
      if (this.#takes(',')) continue
      if (!this.#takes(']')) this.#fail('a list that does not end')
      return list
    }
  }

  #inlineTable(depth: number): TomlTable {
    const table = makeTable()
    for (;;) {
      this.#skip(BLANK_LINES)
      if (this.#takes('}')) return table
      this.#assign(table, depth + 1)
      this.#skip(BLANK_LINES)
      if (this.#takes(',')) continue
      if (!this.#takes('}')) this.#fail('an inline table that does not end')
      return table
    }
  }

  #bare(): TomlValue {
    const word = this.#match(BARE_VALUE) ?? this.#fail('no value')
    if (word === 'true' || word === 'false') return word === 'true'
    if (DATE.test(word)) return word
    if (!NUMBER.test(word)) this.#fail(`${JSON.stringify(word.slice(0, 40))} is no value: text is in quotes`)
    return Number(word.replaceAll('_', '').replace(/^\+/, ''))
  }

  #basic(close: '"' | '"""'): string {
    let shown = ''
    if (close === '"""') this.#match(/\r?\n/y)
    for (;;) {
      if (this.#takes(close)) return shown + this.#closingQuotes(close)
      const character = this.#text[this.#at++]
      if (character === undefined || (character === '\n' && close === '"')) this.#fail('text that does not end')
      shown += character === '\\' ? this.#escape() : character
    }
  }

  /** Up to two quotes may stand before the three that end a text. */
  #closingQuotes(close: string): string {
    return close.length === 1 ? '' : (this.#match(new RegExp(`${close[0]}{0,2}`, 'y')) ?? '')
  }

  #escape(): string {
    if (this.#match(/[ \t]*\r?\n\s*/y) !== undefined) return ''
    const letter = this.#text[this.#at++] ?? ''
    const simple = ESCAPES[letter]
    if (simple !== undefined) return simple
    const digits = { x: 2, u: 4, U: 8 }[letter]
    const code = digits === undefined ? undefined : this.#match(new RegExp(`[\\da-fA-F]{${digits}}`, 'y'))
    const point = code === undefined ? Number.NaN : Number.parseInt(code, 16)
    return point <= 0x10ffff ? String.fromCodePoint(point) : this.#fail('an unknown escape')
  }

  #literal(close: "'" | "'''"): string {
    if (close === "'''") this.#match(/\r?\n/y)
    const end = this.#text.indexOf(close, this.#at)
    const shown = this.#text.slice(this.#at, end)
    if (end === -1 || (close === "'" && shown.includes('\n'))) this.#fail('text that does not end')
    this.#at = end + close.length
    return shown + this.#closingQuotes(close)
  }

  #takes(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false
    this.#at += word.length
    return true
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #skip(pattern: RegExp): boolean {
    return this.#match(pattern) !== undefined
  }

  #fail(what: string): never {
    throw new TomlMistake(what, this.#text.slice(0, this.#at).split('\n').length)
  }
}
