/**
 * Takes tools out of the answer to a request for their list, as edits: every other byte stays (contract 9.20).
 *
 * It knows no rights; it is told by name which tools are shown. A receiver may take either of two members with the same
 * key, so what stands twice is never believed: a tool whose name does is hidden, a list that does is none. The line must
 * have been proved to be JSON. Time is in proportion to the line, and no depth of nesting matters.
 */
import { type Element, elementsOf, hasKey, type Member, membersOf, type Span } from './json-array.ts'
import { QUOTE, skipSpace } from './json-text.ts'
import type { Edit } from './splice.ts'

const OPEN_ARRAY = 0x5b
const OPEN_OBJECT = 0x7b
const LOWER_N = 0x6e

/** Where a list must be, there is none, or there are two. */
export const BAD_LIST = 'bad_list'

/** The edits of the answer `bytes[start, end)`, in order; an error has nothing to hide. */
export function hideTools(
  bytes: Buffer,
  start: number,
  end: number,
  isShown: (name: string) => boolean,
): Edit[] | typeof BAD_LIST {
  if (bytes[skipSpace(bytes, start, end)] !== OPEN_OBJECT) return BAD_LIST
  const answer = [...membersOf(bytes, start, end)]
  const results = answer.filter((member) => hasKey(bytes, member, 'result'))
  if (results.every(({ start }) => bytes[start] === LOWER_N) && answer.some((member) => hasKey(bytes, member, 'error')))
    return []
  return results.length === 1 ? editsOf(bytes, results[0]!, isShown) : BAD_LIST
}

function editsOf(bytes: Buffer, result: Member, isShown: (name: string) => boolean): Edit[] | typeof BAD_LIST {
  const edits: Edit[] = []
  let lists = 0
  for (const member of membersOf(bytes, result.start, result.end)) {
    if (hasKey(bytes, member, 'tools')) {
      if (bytes[member.start] !== OPEN_ARRAY || ++lists > 1) return BAD_LIST
      for (const edit of cutElements(bytes, member, (tool) => !isNamed(bytes, tool, isShown))) edits.push(edit)
    } else if (hasKey(bytes, member, 'cacheScope') && textOf(bytes, member) === 'public') {
      edits.push({ start: member.start, end: member.end, text: '"private"' })
    }
  }
  return lists === 1 ? edits : BAD_LIST
}

/** The tool has exactly one name, and it is shown. */
function isNamed(bytes: Buffer, tool: Span, isShown: (name: string) => boolean): boolean {
  let name: Span | undefined
  for (const member of membersOf(bytes, tool.start, tool.end)) {
    if (!hasKey(bytes, member, 'name')) continue
    if (name !== undefined) return false
    name = member
  }
  const text = name === undefined ? undefined : textOf(bytes, name)
  return text !== undefined && isShown(text)
}

function textOf(bytes: Buffer, { start, end }: Span): string | undefined {
  return bytes[start] === QUOTE ? JSON.parse(bytes.utf8Slice(start, end)) : undefined
}

/** One edit for each run of neighbours: with the comma behind it, or, where the array ends with it, the one before. */
function cutElements(bytes: Buffer, array: Span, isCut: (element: Element) => boolean): Edit[] {
  const edits: Edit[] = []
  let run: Edit | undefined
  let commaBefore: number | undefined
  for (const element of elementsOf(bytes, array.start, array.end)) {
    if (isCut(element)) {
      run = { start: run?.start ?? element.start, end: element.cutEnd, text: '' }
      continue
    }
    if (run !== undefined) edits.push(run)
    run = undefined
    commaBefore = element.cutEnd - 1
  }
  if (run !== undefined) edits.push({ ...run, start: commaBefore ?? run.start })
  return edits
}
