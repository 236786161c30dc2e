/**
 * Takes members out of an object as edits: every other byte stays. The text must have been proved to be JSON.
 */
import { hasKey, membersOf, type Span } from './json-array.ts'
import { isSpace } from './json-text.ts'
import type { Edit } from './splice.ts'

const COMMA = 0x2c

/** One edit for each run of neighbours: with the comma behind it, or, where the object ends with it, the one before. */
export function cutMembers(bytes: Buffer, object: Span, keys: readonly string[]): Edit[] {
  const edits: Edit[] = []
  let run: Edit | undefined
  let endBefore: number | undefined
  for (const member of membersOf(bytes, object.start, object.end)) {
    if (keys.some((key) => hasKey(bytes, member, key))) {
      run = { start: run?.start ?? member.keyStart, end: commaBehind(bytes, member.end, object.end), text: '' }
      continue
    }
    if (run !== undefined) edits.push(run)
    run = undefined
    endBefore = member.end
  }
  if (run !== undefined) edits.push({ ...run, start: endBefore ?? run.start })
  return edits
}

function commaBehind(bytes: Buffer, at: number, end: number): number {
  let behind = at
  while (behind < end && isSpace(bytes[behind]!)) behind++
  return bytes[behind] === COMMA ? behind + 1 : at
}
