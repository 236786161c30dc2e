/**
 * Adds to and takes from the lists of a text of JSON with comments, so that all else stays as it was: every comment, every
 * blank, and the order. Offsets are those of the tree that the text was parsed into; the text is right, or nothing is done.
 */
import {
  applyEdits,
  createScanner,
  type Edit,
  findNodeAtLocation,
  type JSONPath,
  modify,
  type Node,
  parseTree,
} from 'jsonc-parser'

const INDENT = '  '

/** `value` becomes the last of the list at `path`. */
export function append(text: string, path: JSONPath, value: unknown): string {
  const list = nodeAt(text, path)
  const eol = eolOf(text)
  const last = list.children?.at(-1)
  const close = list.offset + list.length - 1
  if (last === undefined) return putFirst(text, { list, close, eol, value })
  return putLast(text, list, (indentation) =>
    indentation === undefined ? inline(value) : block(value, indentation, eol),
  )
}

/** The outermost object, which has keys but not this one, has it as its last. */
export function appendKey(text: string, key: string, value: unknown): string {
  return putLast(text, nodeAt(text, []), () => `${JSON.stringify(key)}: ${inline(value)}`)
}

/** `show` is told how far rows are indented, or nothing where all is on one line. */
function putLast(text: string, container: Node, show: (indentation: string | undefined) => string): string {
  const last = container.children!.at(-1)!
  const close = container.offset + container.length - 1
  const comma = commaAfter(text, endOf(last))
  const indentation = indentationAt(text, last.offset)
  const isInline = !text.slice(container.offset, close).includes('\n')
  const shown = isInline ? ` ${show(undefined)}` : `${eolOf(text)}${indentation}${show(indentation)}`
  // Whoever ends a list with a comma goes on doing so.
  const content = comma === undefined ? shown : `${shown},`
  const edits: Edit[] = [{ offset: endOfContent(text, close), length: 0, content }]
  if (comma === undefined) edits.unshift({ offset: endOf(last), length: 0, content: ',' })
  return applyEdits(text, edits)
}

function eolOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n'
}

/** The element at `path`, whose last step is its place in a list, is gone, with its comma and, if nothing else was on them, its lines. */
export function removeElement(text: string, path: JSONPath): string {
  return removeNode(text, nodeAt(text, path))
}

/** The key at `path` is gone, with its comma and, if nothing else was on them, its lines. */
export function removeKey(text: string, path: JSONPath): string {
  const value = nodeAt(text, path)
  return removeNode(text, value.parent!)
}

function removeNode(text: string, node: Node): string {
  const siblings = node.parent?.children ?? []
  const before = siblings[siblings.indexOf(node) - 1]
  const isLast = siblings.at(-1) === node
  const after = commaAfter(text, endOf(node))
  const edits: Edit[] = [lineOf(text, node.offset, endOf(node), after)]
  const dangling = isLast && after === undefined && before !== undefined ? commaAfter(text, endOf(before)) : undefined
  if (dangling !== undefined) edits.unshift({ offset: dangling, length: 1, content: '' })
  else if (after !== undefined && after >= edits[0]!.offset + edits[0]!.length)
    edits.push({ offset: after, length: 1, content: '' })
  return applyEdits(text, edits)
}

/** The key at `path` has this value, whether it was there or not. */
export function setValue(text: string, path: JSONPath, value: unknown): string {
  return applyEdits(text, modify(text, path, value, { formattingOptions: { keepLines: true } }))
}

function nodeAt(text: string, path: JSONPath): Node {
  const root = parseTree(text, [], { allowTrailingComma: true })
  const node = root && findNodeAtLocation(root, path)
  if (node === undefined) throw new Error(`nothing is at ${path.join('.')}`)
  return node
}

interface First {
  readonly list: Node
  readonly close: number
  readonly eol: string
  readonly value: unknown
}

function putFirst(text: string, { list, close, eol, value }: First): string {
  const outer = indentationAt(text, list.parent?.offset ?? list.offset)
  const inner = outer + INDENT
  const at = endOfContent(text, close)
  const content = `${eol}${inner}${block(value, inner, eol)}${eol}${outer}`
  return applyEdits(text, [{ offset: at, length: close - at, content }])
}

/** A row of keys, each on its own line; whatever is deeper stays on that line. */
function block(value: unknown, indentation: string, eol: string): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return inline(value)
  if (Object.keys(value).length <= 2) return inline(value)
  const step = indentation.includes('\t') ? '\t' : INDENT
  const rows = Object.entries(value).map(
    ([key, entry]) => `${indentation}${step}${JSON.stringify(key)}: ${inline(entry)}`,
  )
  return `{${eol}${rows.join(`,${eol}`)}${eol}${indentation}}`
}

function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).map(([key, entry]) => `${JSON.stringify(key)}: ${inline(entry)}`)
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}

function endOf({ offset, length }: Node): number {
  return offset + length
}

/** Where the comma is that follows `offset`, comments left aside. */
function commaAfter(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true)
  scanner.setPosition(offset)
  scanner.scan()
  return text[scanner.getTokenOffset()] === ',' ? scanner.getTokenOffset() : undefined
}

/** Before the blanks that precede `offset`. */
function endOfContent(text: string, offset: number): number {
  let at = offset
  while (at > 0 && /\s/.test(text[at - 1]!)) at--
  return at
}

function indentationAt(text: string, offset: number): string {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  return /^[ \t]*/.exec(text.slice(start))![0]
}

/** From `offset` to `end`, with a comma right after it, and the whole of its lines where nothing else is on them. */
function lineOf(text: string, offset: number, end: number, comma: number | undefined): Edit {
  const stop = comma !== undefined && /^[ \t]*$/.test(text.slice(end, comma)) ? comma + 1 : end
  const start = text.lastIndexOf('\n', offset - 1) + 1
  const lineEnd = /^[ \t]*\r?\n/.exec(text.slice(stop))
  const isAlone = start > 0 && /^[ \t]*$/.test(text.slice(start, offset)) && lineEnd !== null
  if (isAlone) return { offset: start, length: stop + lineEnd[0].length - start, content: '' }
  // What follows on the line moves up to where this was.
  const gap = /^[ \t]*/.exec(text.slice(stop))![0].length
  return { offset, length: stop + gap - offset, content: '' }
}
