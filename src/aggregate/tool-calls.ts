/**
 * `tools/call` of an aggregate: the name becomes the member's own, all else passes as it is (contract 13.6, 13.13).
 *
 * In search mode `call_tool` is the call of the tool that it names: its arguments are cut out and put in their place, not
 * written anew.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { hasKey, memberOf, membersOf, type Span } from '../wire/json-array.ts'
import { OPEN_OBJECT } from '../wire/json-text.ts'
import type { Edit } from '../wire/splice.ts'
import { CALL_TOOL, type Entry, FIND_TOOLS } from './catalogue.ts'
import { missingMeta } from './lists.ts'
import type { Pending } from './pending.ts'
import { findTools, unknownTool } from './search-tools.ts'
import type { Seat } from './seat.ts'

export function callTool(seat: Seat, pending: Pending, line: Envelope): void {
  const name = nameIn(line)
  const { view } = seat
  if (name === FIND_TOOLS && view.hasOwn(name)) return find(seat, pending, line)
  if (name === CALL_TOOL && view.hasOwn(name)) return callFound(seat, pending, line)
  const tool = name === undefined ? undefined : view.tool(name)
  if (tool === undefined) return seat.refuseUnknown(pending, 'unknown_tool', { name })
  callEntry(seat, pending, { tool, line, edits: [renamed(line, tool)] })
}

interface Call {
  readonly tool: Entry
  readonly line: Envelope
  readonly edits: Edit[]
}

function callEntry(seat: Seat, pending: Pending, { tool, line, edits }: Call): void {
  if (seat.hasMoved('tools', tool.listed))
    return seat.refuse(pending, 'tool_moved', { name: tool.listed, pool: tool.pool })
  const link = seat.linkTo(tool.pool)
  if (link === undefined) return seat.refuseUnknown(pending, 'unknown_tool', { name: tool.listed })
  seat.pass(pending, link, line, edits)
}

/** A name that stands twice is nobody's: nobody can tell which is meant. */
function nameIn(line: Envelope): string | undefined {
  return line.isRepeated(FIELD.name) ? undefined : line.text(FIELD.name)
}

function renamed(line: Envelope, { ownText }: Entry): Edit {
  return { start: line.startOf(FIELD.name), end: line.endOf(FIELD.name), text: ownText }
}

function argumentsIn(line: Envelope): Span | undefined {
  return memberOf(line.bytes, line.startOf(FIELD.params), line.endOf(FIELD.params), 'arguments')
}

function find(seat: Seat, pending: Pending, line: Envelope): void {
  const span = argumentsIn(line)
  const args: unknown = span === undefined ? {} : JSON.parse(line.bytes.utf8Slice(span.start, span.end))
  const { isEmpty, missing } = seat.aggregate
  if (isEmpty) return seat.refuse(pending, 'no_member', { members: missing })
  const found = findTools(seat.view, typeof args === 'object' && args !== null ? { ...args } : {})
  if ('fault' in found) seat.refuse(pending, found.fault)
  else seat.answer(pending, `${inEra(pending, found.result)}${missingMeta(missing)}`)
}

function tellUnknown(seat: Seat, pending: Pending, name: unknown): void {
  const { isEmpty, missing } = seat.aggregate
  if (isEmpty) return seat.refuse(pending, 'no_member', { members: missing })
  seat.answer(pending, `${inEra(pending, unknownTool(seat.view, name))}${missingMeta(missing)}`)
}

function inEra({ era }: Pending, members: string): string {
  return era === 'modern' ? `"resultType":"complete",${members}` : members
}

/** What stands twice in its arguments nobody can tell the meaning of. */
function callFound(seat: Seat, pending: Pending, line: Envelope): void {
  const { bytes } = line
  const outer = argumentsIn(line)
  const members = outer === undefined ? [] : [...membersOf(bytes, outer.start, outer.end)]
  const only = (key: string): Span | undefined => {
    const meant = members.filter((member) => hasKey(bytes, member, key))
    return meant.length === 1 ? meant[0] : undefined
  }
  const named = only('name')
  const name: unknown = named === undefined ? undefined : JSON.parse(bytes.utf8Slice(named.start, named.end))
  const tool = typeof name === 'string' ? seat.view.tool(name) : undefined
  if (tool === undefined || outer === undefined) return tellUnknown(seat, pending, name)
  const inner = only('arguments')
  const isObject = inner !== undefined && bytes[inner.start] === OPEN_OBJECT
  const edits: Edit[] = [
    renamed(line, tool),
    { start: outer.start, end: outer.end, text: isObject ? bytes.utf8Slice(inner.start, inner.end) : '{}' },
  ]
  callEntry(seat, pending, { tool, line, edits })
}
