/**
 * All agents that can be named: the agents file over the index over the built-in one; the same id replaces.
 *
 * What could not be used is kept beside them, so that whoever asks for such an id learns why instead of "unknown".
 */
import { readFile } from 'node:fs/promises'
import { builtinAgents } from './builtin.ts'
import { type AgentDocument, type EntryProblem, type Origin, readDocument } from './document.ts'
import type { AgentEntry } from './entry.ts'
import { describeFailure, RegistryError } from './errors.ts'
import { type IndexRequest, type IndexState, loadIndex } from './index-cache.ts'
import type { RegistrySources } from './sources.ts'

export interface ListedAgent {
  readonly entry: AgentEntry
  readonly origin: Origin
}

export interface Catalogue {
  readonly agents: ReadonlyMap<string, ListedAgent>
  readonly problems: readonly EntryProblem[]
  readonly indexState: IndexState
  /** Why the index is not what it should be; the agents are usable all the same. */
  readonly warnings: readonly string[]
}

export async function loadCatalogue(sources: RegistrySources, request: IndexRequest): Promise<Catalogue> {
  const custom = await readAgentsFile(sources.agentsFile)
  const index = await loadIndex(sources, request)
  const listed = index.text === undefined ? EMPTY : requireDocument(index.text, 'index', sources.index)
  const layers: readonly (readonly [Origin, readonly AgentEntry[]])[] = [
    ['built-in', builtinAgents()],
    ['index', listed.agents],
    ['agents file', custom.agents],
  ]
  const agents = new Map<string, ListedAgent>()
  for (const [origin, entries] of layers) for (const entry of entries) agents.set(entry.id, { entry, origin })
  return {
    agents: new Map([...agents].sort(([a], [b]) => (a < b ? -1 : 1))),
    problems: [...custom.problems, ...listed.problems],
    indexState: index.state,
    warnings: index.warning === undefined ? [] : [index.warning],
  }
}

/** The agent with this id, or the best reason why there is none. */
export function findAgent(catalogue: Catalogue, id: string): ListedAgent {
  const found = catalogue.agents.get(id)
  if (found !== undefined) return found
  const bad = catalogue.problems.find((problem) => problem.id === id)
  if (bad !== undefined) throw new RegistryError('bad_entry', id, `${bad.origin}: ${bad.problem}`)
  const near = nearest(id, [...catalogue.agents.keys()])
  const hint = near === undefined ? undefined : `did you mean "${near}"?`
  throw new RegistryError('unknown_agent', id, hint ?? STATES[catalogue.indexState])
}

/** What may be the matter when an id is not there. */
const STATES: Readonly<Partial<Record<IndexState, string>>> = {
  absent: 'the index could not be fetched, so only the built-in agents are known',
  stale: 'the index could not be fetched, so an old copy of it was searched',
}

const EMPTY: AgentDocument = { agents: [], problems: [] }

async function readAgentsFile(path: string | undefined): Promise<AgentDocument> {
  if (path === undefined) return EMPTY
  try {
    return requireDocument(await readFile(path, 'utf8'), 'agents file', path)
  } catch (error) {
    if (error instanceof RegistryError) throw error
    throw new RegistryError('agents_unreadable', path, describeFailure(error), error)
  }
}

function requireDocument(text: string, origin: 'index' | 'agents file', name: string): AgentDocument {
  const document = readDocument(text, origin)
  if (!('problem' in document)) return document
  throw new RegistryError(origin === 'index' ? 'index_unreadable' : 'agents_unreadable', name, document.problem)
}

/** An id that contains the wrong one, is contained in it, or differs in a letter or two. */
function nearest(wrong: string, ids: readonly string[]): string | undefined {
  return (
    ids.find((id) => id.includes(wrong) || (id.length > 2 && wrong.includes(id))) ??
    ids.find((id) => Math.abs(id.length - wrong.length) <= 2 && distance(id, wrong) <= 2)
  )
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
