/**
 * Parts of an update that show a terminal: a client that does not have it cannot show them, and may drop the whole update
 * (contract 12.12). They become text; everything else stays as it is, byte for byte.
 */
import { elementsOf, memberOf, membersOf, type Span } from '../wire/json-array.ts'
import type { KeepingWords } from './dialect-table.ts'

type TerminalPart = KeepingWords['terminalPart']

export function withoutTerminals(line: Buffer, part: TerminalPart, isOwn: (terminal: string) => boolean): Buffer {
  if (!line.includes(markOf(part))) return line
  const pieces: Buffer[] = []
  let rest = 0
  for (const { start, end } of partsIn(line)) {
    const terminal = terminalAt(line, { start, end }, part)
    if (terminal === undefined || isOwn(terminal)) continue
    pieces.push(line.subarray(rest, start), Buffer.from(part.instead))
    rest = end
  }
  return rest === 0 ? line : Buffer.concat([...pieces, line.subarray(rest)])
}

/** By which most lines are known to have none: bytes are found faster than text. */
const marks = new WeakMap<TerminalPart, Buffer>()

function markOf(part: TerminalPart): Buffer {
  const known = marks.get(part)
  if (known !== undefined) return known
  const mark = Buffer.from(`"${part.key}"`)
  marks.set(part, mark)
  return mark
}

/** The elements of every array that an update has. */
function* partsIn(line: Buffer): Generator<Span> {
  const params = memberOf(line, 0, line.length, 'params')
  const update = params === undefined ? undefined : memberOf(line, params.start, params.end, 'update')
  if (update === undefined) return
  for (const { start, end } of membersOf(line, update.start, update.end)) yield* elementsOf(line, start, end)
}

function terminalAt(line: Buffer, { start, end }: Span, { type, key }: TerminalPart): string | undefined {
  if (textOf(line, memberOf(line, start, end, 'type')) !== type) return undefined
  return textOf(line, memberOf(line, start, end, key))
}

function textOf(line: Buffer, span: Span | undefined): string | undefined {
  if (span === undefined || line[span.start] !== 0x22) return undefined
  return JSON.parse(line.utf8Slice(span.start, span.end)) as string
}
