/**
 * Finds what stands inside a line of Markdown: emphasis, code, links, words; piece by piece, while the line still grows.
 *
 * Markup that is opened is waited for until it is closed, the line ends or too much was held; then its opening is what it
 * looks like. It knows the common forms and no HTML. Invariant: the sources of the pieces, one after the other, are the line.
 */

export interface Inline {
  readonly kind: 'text' | 'strong' | 'emphasis' | 'strike' | 'code' | 'link'
  readonly text: string
  /** As it was written. */
  readonly source: string
  readonly href?: string
}

const MAX_HELD_CHARS = 2_000
const PLAIN = /^[^\\`*_~[!]+/
const LINK = /^!?\[([^[\]]*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)?)(?:\s+"[^"]*")?\)/
/** The beginning of what may become a link. */
const LINK_BEGUN = /^!?\[[^[\]]*(?:\](?:\([^()]*(?:\([^()]*\)?[^()]*)?)?)?$/
const MARKS = [
  { mark: '***', kind: 'strong' },
  { mark: '**', kind: 'strong' },
  { mark: '__', kind: 'strong' },
  { mark: '~~', kind: 'strike' },
  { mark: '*', kind: 'emphasis' },
  { mark: '_', kind: 'emphasis' },
] as const

/** The first piece of `text`, before which stood `before`; undefined: what it is, only more of the line can tell. */
export function takeInline(text: string, before: string, isWhole: boolean): Inline | undefined {
  const plain = PLAIN.exec(text)?.[0]
  if (plain !== undefined) return asText(plain)
  const canWait = !isWhole && text.length < MAX_HELD_CHARS
  const found = takeEscape(text, canWait) ?? takeCode(text, canWait) ?? takeLink(text, canWait)
  const piece = found ?? takeMarked(text, before, canWait)
  if (piece === 'wait') return undefined
  return piece ?? asText(text.slice(0, 1))
}

/** All pieces of a text that is whole. */
export function readInline(text: string): Inline[] {
  const pieces: Inline[] = []
  for (let at = 0; at < text.length; ) {
    const piece = takeInline(text.slice(at), text.slice(0, at), true)!
    pieces.push(piece)
    at += piece.source.length
  }
  return pieces
}

type Found = Inline | 'wait' | undefined

function asText(source: string): Inline {
  return { kind: 'text', text: source, source }
}

function takeEscape(text: string, canWait: boolean): Found {
  if (text[0] !== '\\') return undefined
  if (text.length === 1) return canWait ? 'wait' : undefined
  return /^\\[!-/:-@[-`{-~]/.test(text) ? { kind: 'text', text: text[1]!, source: text.slice(0, 2) } : undefined
}

function takeCode(text: string, canWait: boolean): Found {
  const ticks = runLength(text, 0, '`')
  if (ticks === 0) return undefined
  const end = findTicks(text, ticks, ticks)
  if (end !== undefined && !(canWait && end + ticks === text.length)) return codeOf(text, ticks, end)
  // A run of ticks at the end may grow.
  return canWait ? 'wait' : asText(text.slice(0, ticks))
}

/** Where a run of exactly so many ticks stands. */
function findTicks(text: string, count: number, from: number): number | undefined {
  for (let at = text.indexOf('`', from); at !== -1; at = text.indexOf('`', at)) {
    const run = runLength(text, at, '`')
    if (run === count) return at
    at += run
  }
  return undefined
}

function codeOf(text: string, ticks: number, end: number): Inline {
  const inner = text.slice(ticks, end)
  const isPadded = /^ .*[^ ].* $/.test(inner)
  return { kind: 'code', text: isPadded ? inner.slice(1, -1) : inner, source: text.slice(0, end + ticks) }
}

function takeLink(text: string, canWait: boolean): Found {
  const isImage = text.startsWith('!')
  if (!isImage && text[0] !== '[') return undefined
  const found = LINK.exec(text)
  if (found !== null) return { kind: 'link', text: found[1]! || found[2]!, href: found[2]!, source: found[0] }
  if (!canWait) return undefined
  return text === '!' || LINK_BEGUN.test(text) ? 'wait' : undefined
}

function takeMarked(text: string, before: string, canWait: boolean): Found {
  const marked = MARKS.find(({ mark }) => text.startsWith(mark))
  if (marked === undefined) return text === '~' && canWait ? 'wait' : undefined
  const { mark, kind } = marked
  const next = text[mark.length]
  if (next === undefined) return canWait ? 'wait' : asText(mark)
  const isWord = mark[0] === '_' && /\w$/.test(before)
  if (/\s/.test(next) || isWord || next === mark[0]) return asText(text.match(/^([*_~])\1*/)![0])
  const end = findEnd(text, mark, canWait)
  if (end === undefined) return canWait ? 'wait' : asText(mark)
  const isLast = end + mark.length === text.length
  if (isLast && canWait) return 'wait'
  return { kind, text: text.slice(mark.length, end), source: text.slice(0, end + mark.length) }
}

/**
 * Where the closing mark stands: behind something, and of `_` not inside a word; what is code is passed over. Undefined
 * also while it is not sure what is code.
 */
function findEnd(text: string, mark: string, canWait: boolean): number | undefined {
  const sign = mark[0]!
  for (let at = mark.length + 1; at < text.length; at++) {
    const char = text[at]!
    if (char === '\\') at++
    if (char !== '`' && char !== sign) continue
    const run = runLength(text, at, char)
    if (char === '`') {
      const end = findTicks(text, run, at + run)
      if (canWait && (end === undefined || end + run === text.length)) return undefined
      at = (end ?? at) + run - 1
    } else {
      if (isClosing(text, at, run, mark)) return at + run - mark.length
      at += run - 1
    }
  }
  return undefined
}

/** Three in a row close what is inside first. */
function isClosing(text: string, at: number, run: number, mark: string): boolean {
  if (run !== mark.length && !(run === 3 && mark.length < 3)) return false
  const isInWord = mark[0] === '_' && /\w/.test(text[at + run] ?? '')
  return !/\s/.test(text[at - 1]!) && !isInWord
}

function runLength(text: string, at: number, sign: string): number {
  let end = at
  while (text[end] === sign) end++
  return end - at
}
