/**
 * Shows Markdown on a terminal while it arrives: headings, lists, quotes, tables, code, emphasis and links, word by word.
 *
 * It only appends, and holds back no more than a table, a line of code or an opened mark. HTML is shown as it is. Where there
 * are no colours the marks stay, since they alone carry the emphasis. The text has been made printable before.
 */
import { type Inline, readInline, takeInline } from './markdown-inline.ts'
import { isTableRow, renderTable } from './markdown-table.ts'
import type { Colors, Paint } from './paint.ts'
import type { Out } from './screen.ts'
import { type Margin, WordWrap } from './word-wrap.ts'

export interface MarkdownOptions {
  readonly columns: () => number
  readonly paint: Colors
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/
const HEADING = /^ {0,3}(#{1,6})\s+(?=\S)/
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(?:\[([ xX])\]\s+)?(?=\S)/
const QUOTE = /^ {0,3}(?:>\s?)+(?=\S)/
/** What may still become one of these, were there more of it. */
const UNDECIDED = new RegExp(
  `^\\s*(?:${[
    '#{1,6}',
    '[-*+_][\\s*_-]*',
    '\\d{1,9}[.)]?',
    '`{1,2}|`{3,}[^`]*|~{1,2}|~{3,}.*',
    '>[\\s>]*',
    '\\|.*',
    '(?:[-*+]|\\d{1,9}[.)])\\s+\\[[ xX]?\\]?',
  ].join('|')})?\\s*$`,
)
const MAX_INDENT = 20
const MAX_TABLE_ROWS = 200
/** A line of code or of a table that does not end is shown in pieces. */
const MAX_HELD_CHARS = 16_384

export class Markdown {
  readonly #wrap: WordWrap
  readonly #paint: Colors
  #line = ''
  /** How the words of the line at hand are painted; undefined: what the line is has not been decided. */
  #words: Paint | undefined
  /** What of the line has been said. */
  #said = ''
  #fence: string | undefined
  #table: string[] = []
  #isBlank = true

  constructor(out: Out, { columns, paint }: MarkdownOptions) {
    this.#wrap = new WordWrap(out, columns)
    this.#paint = paint
  }

  /** A line has been begun on the terminal. */
  get isOpen(): boolean {
    return this.#wrap.isOpen
  }

  push(text: string): void {
    this.#line += text
    for (let end = this.#line.indexOf('\n'); end !== -1; end = this.#line.indexOf('\n')) {
      const line = this.#line.slice(0, end)
      this.#line = this.#line.slice(end + 1)
      this.#takeWhole(line)
    }
    this.#takeBegun()
  }

  /** Nothing more comes: what is held is shown, and the line ended. */
  end(): void {
    if (this.#line !== '' || this.#words !== undefined) this.#takeWhole(this.#line)
    this.#flushTable()
    this.#line = ''
    this.#fence = undefined
    this.#isBlank = true
  }

  #takeWhole(line: string): void {
    if (this.#fence !== undefined) return this.#takeCode(line)
    if (this.#words === undefined && isTableRow(line)) return this.#takeRow(line)
    this.#flushTable()
    if (this.#words === undefined && this.#takeBlock(line)) return
    if (this.#words === undefined) line = this.#decide(line)
    this.#say(line, true)
    this.#endLine()
  }

  /** Shows as much of an unfinished line as is sure. */
  #takeBegun(): void {
    const isHeld = this.#fence !== undefined || this.#line === ''
    if (this.#line.length > MAX_HELD_CHARS && (isHeld || this.#words === undefined))
      return this.#takeWhole(this.#cutLine())
    if (isHeld || (this.#words === undefined && UNDECIDED.test(this.#line))) return
    this.#flushTable()
    if (this.#words === undefined) this.#line = this.#decide(this.#line)
    this.#line = this.#say(this.#line, false)
  }

  #cutLine(): string {
    const line = this.#line
    this.#line = ''
    return line
  }

  /** Lines that are something by themselves. */
  #takeBlock(line: string): boolean {
    this.#wrap.begin()
    const fence = FENCE.exec(line)
    if (fence !== null) {
      this.#fence = fence[1]!
      if (fence[2]) this.#wrap.verbatim(this.#paint.dim(`  ${fence[2].trim()}`), String)
      this.#isBlank = false
      return true
    }
    if (line.trim() === '') {
      // Nobody needs more than one, nor one to begin with.
      if (!this.#isBlank) this.#wrap.verbatim('', String)
      this.#isBlank = true
      return true
    }
    if (!RULE.test(line)) return false
    this.#isBlank = false
    this.#wrap.verbatim('─'.repeat(Math.min(this.#wrap.width, 40)), this.#paint.dim)
    return true
  }

  #takeCode(line: string): void {
    const fence = this.#fence!
    const isEnd = line.trim().startsWith(fence) && line.trim().replaceAll(fence[0]!, '') === ''
    if (isEnd) this.#fence = undefined
    else this.#wrap.verbatim(`  ${line}`, this.#paint.cyan)
    this.#isBlank = false
  }

  #takeRow(line: string): void {
    this.#table.push(line)
    if (this.#table.length >= MAX_TABLE_ROWS) this.#flushTable()
  }

  #flushTable(): void {
    const rows = this.#table.splice(0)
    if (rows.length === 0) return
    this.#wrap.begin()
    const drawn = renderTable(rows, this.#wrap.width, this.#paint)
    for (const line of drawn ?? rows) this.#wrap.verbatim(line, String)
    this.#isBlank = false
  }

  /** What the line is: gives it its margin and its paint, and what remains of it. */
  #decide(line: string): string {
    const { margin, words, rest } = this.#kindOf(line)
    this.#wrap.begin(margin)
    this.#words = words
    this.#said = ''
    return rest
  }

  #kindOf(line: string): { margin?: Margin; words: Paint; rest: string } {
    const paint = this.#paint
    const heading = HEADING.exec(line)
    if (heading !== null) {
      const rest = line.slice(heading[0].length)
      const words: Paint = (text) => paint.bold(heading[1] === '#' ? paint.underline(text) : text)
      return { words, rest: paint.isColorSupported ? rest : line.trimStart() }
    }
    const item = ITEM.exec(line)
    if (item !== null) return { margin: marginOf(item, paint), words: String, rest: line.slice(item[0].length) }
    const quote = QUOTE.exec(line)
    if (quote === null) return { margin: indentOf(line), words: String, rest: line.trimStart() }
    const bar = '│ '.repeat(quote[0].replace(/[^>]/g, '').length)
    return { margin: { first: bar, rest: bar, paint: paint.dim }, words: paint.dim, rest: line.slice(quote[0].length) }
  }

  /** Says what is sure of a text; gives what is not. */
  #say(text: string, isWhole: boolean): string {
    let left = text
    for (let piece = takeFirst(left, this.#said, isWhole); piece !== undefined; ) {
      this.#sayPiece(piece, this.#words ?? String)
      this.#said = (this.#said + piece.source).slice(-2)
      left = left.slice(piece.source.length)
      piece = takeFirst(left, this.#said, isWhole)
    }
    return left
  }

  #sayPiece(piece: Inline, words: Paint): void {
    const { kind, text, source, href } = piece
    if (kind === 'text' || !this.#paint.isColorSupported) return this.#wrap.say(kind === 'text' ? text : source, words)
    if (kind === 'code') return this.#wrap.say(text, (code) => words(this.#paint.cyan(code)))
    if (kind === 'link') return this.#sayLink(text, href!, words)
    const own = { strong: this.#paint.bold, emphasis: this.#paint.italic, strike: this.#paint.strikethrough }[kind]
    for (const inner of readInline(text)) this.#sayPiece(inner, (said) => words(own(said)))
  }

  #sayLink(label: string, href: string, words: Paint): void {
    this.#wrap.say(label, (text) => words(this.#paint.underline(text)))
    if (href !== label && href !== '') this.#wrap.say(` (${href})`, this.#paint.dim)
  }

  #endLine(): void {
    this.#wrap.endLine()
    this.#words = undefined
    this.#said = ''
    this.#isBlank = false
  }
}

function takeFirst(text: string, before: string, isWhole: boolean): Inline | undefined {
  return text === '' ? undefined : takeInline(text, before, isWhole)
}

function indentOf(line: string): Margin {
  const indent = shortIndent(/^\s*/.exec(line)![0])
  return { first: indent, rest: indent }
}

function shortIndent(spaces: string): string {
  return spaces.replaceAll('\t', '  ').slice(0, MAX_INDENT)
}

function marginOf([, indent, mark, box]: RegExpExecArray, paint: Colors): Margin {
  const sign = box === undefined ? (/\d/.test(mark!) ? mark! : '•') : box === ' ' ? '☐' : '☑'
  const first = `${shortIndent(indent!)}${sign} `
  return { first, rest: ' '.repeat(first.length), paint: paint.cyan }
}
