/**
 * The text of a configuration file, its value without comments, and the place of every key and value in it.
 *
 * It knows JSON with comments and nothing of the meaning. It never throws on any text: nesting and size are bounded, and
 * what cannot be read is a finding. Keys that begin with `_`, and `$schema`, are comments and left out of the value,
 * except in maps whose keys are the user's own names (`env`, `headers`), where only a text can be meant as an entry.
 */
import { createScanner, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { type Finding, type Path, type Problem, quote, showPath } from './problem.ts'

export interface Source {
  readonly file: string
  readonly value: unknown
  /** Syntax errors and duplicate keys. */
  readonly problems: readonly Problem[]
  /** Whether `value` is what the author meant, so that judging it makes sense. */
  readonly readable: boolean
  /** Gives a finding its place: that of the nearest thing that exists. */
  place(finding: Finding): Problem
}

const MAX_DEPTH = 64
const MAPS = new Set<string | number>(['env', 'headers'])

/** Mistakes after which the parser still sees the whole document. */
const HARMLESS = new Set(['CommaExpected', 'CloseBraceExpected', 'CloseBracketExpected', 'InvalidEscapeCharacter'])

const SENTENCES: Record<string, { found: string; allowed: string }> = {
  InvalidSymbol: { found: 'a bare word', allowed: 'text in double quotes, a number, true, false or null' },
  InvalidNumberFormat: { found: 'a malformed number', allowed: 'a number such as 10 or 0.5' },
  PropertyNameExpected: { found: 'no key', allowed: 'a key in double quotes' },
  ValueExpected: {
    found: 'no value',
    allowed: 'a value: text in double quotes, a number, true, false, null, { } or [ ]',
  },
  ColonExpected: { found: 'no colon', allowed: 'a colon between key and value' },
  CommaExpected: { found: 'no comma', allowed: 'a comma between two entries' },
  CloseBraceExpected: { found: 'an object that does not end', allowed: 'a closing }' },
  CloseBracketExpected: { found: 'a list that does not end', allowed: 'a closing ]' },
  EndOfFileExpected: { found: 'text after the end', allowed: 'one object and nothing after it' },
  UnexpectedEndOfComment: { found: 'a comment that does not end', allowed: 'a closing */' },
  UnexpectedEndOfString: { found: 'text that does not end', allowed: 'closing double quotes on the same line' },
  UnexpectedEndOfNumber: { found: 'half a number', allowed: 'a number such as 10 or 0.5' },
  InvalidUnicode: { found: 'a malformed \\u escape', allowed: '\\u and four hexadecimal digits' },
  InvalidEscapeCharacter: { found: 'an unknown escape', allowed: '\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u0000' },
  InvalidCharacter: { found: 'a control character', allowed: 'the escapes \\n, \\t or \\u0000 for it' },
}

/** Reads `text`; `file` is only for the problems, and so is what an empty one was `expected` to hold. */
export function parseSource(file: string, text: string, expected = 'an object with "pools"'): Source {
  const position = positionsIn(text)
  if (isTooDeep(text)) return unreadable(file, `more than ${MAX_DEPTH} levels of nesting`, 'a flatter document')
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  if (root === undefined && errors.length <= 1) return unreadable(file, 'an empty file', expected)

  const at = (offset: number, path: Path, finding: Omit<Finding, 'path'>): Problem => ({
    severity: finding.severity ?? 'error',
    file,
    ...position(offset),
    path: showPath(path),
    found: finding.found,
    allowed: finding.allowed,
    ...(finding.suggestion === undefined ? {} : { suggestion: finding.suggestion }),
  })
  const syntax = errors.map((error) => at(error.offset, [], sentenceFor(error)))
  const doubles = root === undefined ? [] : duplicateKeys(root).map((it) => at(it.offset, it.path, it.finding))
  return {
    file,
    value: root === undefined ? undefined : plainValue(root, false),
    problems: [...firstOfEachLine(syntax), ...doubles],
    readable: errors.every((error) => HARMLESS.has(printParseErrorCode(error.error))),
    place: (finding) => at(offsetOf(root, finding), finding.path, finding),
  }
}

/** A source about which only one thing can be said. */
export function unreadable(file: string, found: string, allowed: string, suggestion?: string): Source {
  const whole: Finding = { path: [], found, allowed, ...(suggestion === undefined ? {} : { suggestion }) }
  const place = (finding: Finding): Problem => ({
    severity: 'error',
    file,
    line: 0,
    column: 0,
    ...finding,
    path: showPath(finding.path),
  })
  return { file, value: undefined, problems: [place(whole)], readable: false, place }
}

function sentenceFor(error: ParseError): Omit<Finding, 'path'> {
  return SENTENCES[printParseErrorCode(error.error)] ?? { found: 'something that is not JSON', allowed: 'JSON' }
}

/** The parser stumbles on after a mistake; what it says next on the same line is an echo. */
function firstOfEachLine(problems: readonly Problem[]): Problem[] {
  const lines = new Set<number>()
  return problems.filter(({ line }) => !lines.has(line) && lines.add(line))
}

/** The parser recurses; a document that would exhaust the stack is refused before it gets there. */
function isTooDeep(text: string): boolean {
  const scanner = createScanner(text, true)
  let depth = 0
  for (scanner.scan(); scanner.getTokenOffset() < text.length; scanner.scan()) {
    const first = text[scanner.getTokenOffset()]
    if (first === '{' || first === '[') depth++
    if (first === '}' || first === ']') depth--
    if (depth > MAX_DEPTH) return true
  }
  return false
}

function positionsIn(text: string): (offset: number) => { line: number; column: number } {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    // A file may have as many mistakes as lines: they are not looked for one after the other.
    let [line, after] = [0, starts.length]
    while (after - line > 1) {
      const middle = (line + after) >>> 1
      if (starts[middle]! <= offset) line = middle
      else after = middle
    }
    return { line: line + 1, column: offset - starts[line]! + 1 }
  }
}

function isComment(key: string, value: Node | undefined, inMap: boolean): boolean {
  if (!inMap) return key.startsWith('_') || key === '$schema'
  return key.startsWith('_') && value?.type !== 'string'
}

function keyOf(property: Node): string {
  return String(property.children?.[0]?.value)
}

function plainValue(node: Node, inMap: boolean): unknown {
  if (node.type === 'array') return (node.children ?? []).map((child) => plainValue(child, false))
  if (node.type !== 'object') return node.value
  const entries: [string, unknown][] = []
  for (const property of node.children ?? []) {
    const key = keyOf(property)
    const value = property.children?.[1]
    if (value === undefined || isComment(key, value, inMap)) continue
    entries.push([key, plainValue(value, inMap || MAPS.has(key))])
  }
  return Object.fromEntries(entries)
}

interface Double {
  readonly offset: number
  readonly path: Path
  readonly finding: Omit<Finding, 'path'>
}

function duplicateKeys(root: Node): Double[] {
  const doubles: Double[] = []
  const path: (string | number)[] = []
  const look = (node: Node | undefined, step: string | number): void => {
    if (node?.children === undefined) return
    path.push(step)
    if (node.type === 'object') lookAtKeys(node.children)
    else for (const [index, child] of node.children.entries()) look(child, index)
    path.pop()
  }
  const lookAtKeys = (properties: readonly Node[]): void => {
    const seen = new Set<string>()
    for (const property of properties) {
      const key = keyOf(property)
      const value = property.children?.[1]
      if (isComment(key, value, false)) continue
      if (seen.has(key)) doubles.push({ offset: property.offset, path: [...path.slice(1), key], finding: second(key) })
      seen.add(key)
      look(value, key)
    }
  }
  look(root, '')
  return doubles
}

function second(key: string): Omit<Finding, 'path'> {
  return { found: `${quote(key)} a second time`, allowed: 'each key once', suggestion: 'remove one of the two' }
}

/** Where a finding points: the value or the key at its path, else the nearest thing around it. */
function offsetOf(root: Node | undefined, finding: Finding): number {
  let node = root
  let offset = root?.offset ?? 0
  for (const [index, step] of finding.path.entries()) {
    const property = typeof step === 'string' ? findProperty(node, step) : undefined
    const next = typeof step === 'number' ? node?.children?.[step] : property?.children?.[1]
    if (next === undefined) return property?.offset ?? offset
    const isLast = index === finding.path.length - 1
    offset = isLast && finding.at === 'key' && property !== undefined ? property.offset : next.offset
    node = next
  }
  return offset
}

/** The last of several, as the value holds the last one too. */
function findProperty(node: Node | undefined, key: string): Node | undefined {
  return node?.type === 'object' ? node.children?.findLast((property) => keyOf(property) === key) : undefined
}
