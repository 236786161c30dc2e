/**
 * Reads a document of the index's form, `{version, agents[]}`, entry by entry.
 *
 * One bad entry does not spoil the others: it is left out and reported. Only a document that is not of the form at all
 * is refused, with a sentence that never quotes it.
 */
import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser'
import { type AgentEntry, agentEntry, describeIssues } from './entry.ts'
import { printable } from './printable.ts'

export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
const MAX_AGENTS = 10_000

/** Where an entry was read: it decides which one of two with the same id is meant. */
export type Origin = 'agents file' | 'index' | 'built-in'

export interface EntryProblem {
  readonly origin: Origin
  readonly id: string | undefined
  /** Place in the document, from 0. */
  readonly position: number
  readonly problem: string
}

export interface AgentDocument {
  readonly agents: readonly AgentEntry[]
  readonly problems: readonly EntryProblem[]
}

/** JSON with comments and trailing commas; a syntax error is named by its line, not by its text. */
export function parseJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  const errors: ParseError[] = []
  const value: unknown = parse(text, errors, { allowTrailingComma: true })
  const first = errors[0]
  if (first === undefined) return { value }
  const line = text.slice(0, first.offset).split('\n').length
  return { problem: `line ${line}: ${printParseErrorCode(first.error)}` }
}

export function readDocument(text: string, origin: Origin): AgentDocument | { readonly problem: string } {
  const parsed = parseJson(text)
  if ('problem' in parsed) return parsed
  const list = agentList(parsed.value)
  if (list === undefined) return { problem: 'there is no list "agents" in it' }
  if (list.length > MAX_AGENTS) return { problem: `it has more than ${MAX_AGENTS} agents` }
  return readEntries(list, origin)
}

function agentList(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== 'object' || value === null || !('agents' in value)) return undefined
  return Array.isArray(value.agents) ? value.agents : undefined
}

function readEntries(list: readonly unknown[], origin: Origin): AgentDocument {
  const agents = new Map<string, AgentEntry>()
  const problems: EntryProblem[] = []
  list.forEach((value, position) => {
    const result = agentEntry.safeParse(value)
    const problem = result.success ? misplaced(agents, result.data, origin) : describeIssues(result.error)
    if (problem !== undefined) problems.push({ origin, id: idOf(value), position, problem: printable(problem, 500) })
    else if (result.success) agents.set(result.data.id, result.data)
  })
  return { agents: [...agents.values()], problems }
}

/** What is wrong with an entry only where it stands. */
function misplaced(agents: ReadonlyMap<string, AgentEntry>, entry: AgentEntry, origin: Origin): string | undefined {
  if (agents.has(entry.id)) return 'the same id stands earlier in the document'
  const targets = Object.values(entry.distribution.binary ?? {})
  const local = targets.some((target) => target.archive === undefined)
  return local && origin !== 'agents file'
    ? 'a binary needs an "archive" (only an agents file may name a command)'
    : undefined
}

function idOf(value: unknown): string | undefined {
  const id = typeof value === 'object' && value !== null && 'id' in value ? value.id : undefined
  return typeof id === 'string' ? printable(id, 80) : undefined
}
