/**
 * What the graph of a trace shows (contract 15.9): a node for each call, an edge from each caller; where that would be too many to look
 * at, a node for each agent, and an edge with how often one calls the other.
 *
 * Never more than can be looked at, and laid out in time: of too many agents the quietest are one node, of too many edges the
 * weakest are left out.
 */
import type { Branch } from './call-tree.ts'
import { type Call, nameOf, plural, tookOf } from './trace.ts'

export const MAX_NODES = 200
export const MAX_EDGES = 300
const OTHERS = 'others'

export interface GraphNode {
  readonly id: string
  /** The call that it is, or of a group the one to look at first: what failed, else what took longest. */
  readonly call: number
  readonly title: string
  readonly detail: string
  readonly status: Call['status']
}

export interface GraphEdge {
  readonly from: string
  readonly to: string
  readonly isError: boolean
  /** So many calls. */
  readonly count: number
}

export interface CallGraph {
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly GraphEdge[]
  readonly isGrouped: boolean
  /** So many edges are not drawn. */
  readonly leftOut: number
}

export function graphOf(calls: readonly Call[], title: (call: Call) => string = nameOf): CallGraph {
  if (calls.length > MAX_NODES) return groupedByAgent(calls)
  const known = new Set(calls.map(({ id }) => id))
  return {
    isGrouped: false,
    leftOut: 0,
    nodes: calls.map((call) => ({
      id: String(call.id),
      call: call.id,
      title: title(call),
      detail: detailOf(call),
      status: call.status,
    })),
    edges: calls.flatMap((call) => (hasParent(call, known) ? [edgeTo(call)] : [])),
  }
}

function hasParent({ id, parent_id }: Branch, known: ReadonlySet<number>): boolean {
  return parent_id !== null && parent_id !== id && known.has(parent_id)
}

function edgeTo({ id, parent_id, status }: Call): GraphEdge {
  return { from: String(parent_id), to: String(id), isError: status === 'error', count: 1 }
}

function detailOf({ target, error, ...call }: Call): string {
  return [target, call.status === 'error' ? (error?.code ?? 'error') : undefined, tookOf(call)]
    .filter((part) => part !== undefined)
    .join(' · ')
}

interface Group {
  readonly agent: string
  count: number
  errors: number
  open: number
  busyMs: number
  worst: Call
}

function groupedByAgent(calls: readonly Call[]): CallGraph {
  const groups = groupsOf(calls)
  const shown = [...groups.values()].sort((one, other) => other.count - one.count)
  const alone = shown.length > MAX_NODES ? shown.slice(0, MAX_NODES - 1) : shown
  const rest = shown.slice(alone.length)
  const nodeOf = new Map(alone.map(({ agent }, index) => [agent, String(index)]))
  const agentOf = new Map(calls.map(({ id, agent }) => [id, nodeOf.get(agent) ?? OTHERS]))
  const edges = new Map<string, GraphEdge>()
  for (const call of calls) {
    const from = call.parent_id === null ? undefined : agentOf.get(call.parent_id)
    const to = agentOf.get(call.id)!
    // What an agent asks of itself is inside of its node.
    if (from === undefined || from === to) continue
    const known = edges.get(`${from} ${to}`)
    const isError = call.status === 'error' || known?.isError === true
    edges.set(`${from} ${to}`, { from, to, isError, count: (known?.count ?? 0) + 1 })
  }
  const nodes = alone.map((group) => groupNode(nodeOf.get(group.agent)!, group.agent, group))
  if (rest.length > 0) nodes.push(groupNode(OTHERS, plural(rest.length, 'other agent'), rest.reduce(joined)))
  const strongest = [...edges.values()].sort(byWeight).slice(0, MAX_EDGES)
  return { nodes, edges: strongest, isGrouped: true, leftOut: edges.size - strongest.length }
}

/** What failed first, then what is done most. */
function byWeight(one: GraphEdge, other: GraphEdge): number {
  return Number(other.isError) - Number(one.isError) || other.count - one.count
}

function groupsOf(calls: readonly Call[]): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>()
  for (const call of calls) {
    const { agent, status, duration_ms: ms } = call
    const group = groups.get(agent) ?? { agent, count: 0, errors: 0, open: 0, busyMs: 0, worst: call }
    groups.set(agent, group)
    group.count++
    group.errors += status === 'error' ? 1 : 0
    group.open += status === 'pending' ? 1 : 0
    group.busyMs += ms ?? 0
    group.worst = worse(group.worst, call)
  }
  return groups
}

function joined(one: Group, other: Group): Group {
  return {
    agent: '',
    count: one.count + other.count,
    errors: one.errors + other.errors,
    open: one.open + other.open,
    busyMs: one.busyMs + other.busyMs,
    worst: worse(one.worst, other.worst),
  }
}

function worse(one: Call, other: Call): Call {
  const rank = ({ status, duration_ms }: Call): number => (status === 'error' ? 1e12 : 0) + (duration_ms ?? 0)
  return rank(other) > rank(one) ? other : one
}

function groupNode(id: string, title: string, { count, errors, open, busyMs, worst }: Group): GraphNode {
  const parts = [
    plural(count, 'call'),
    errors > 0 ? plural(errors, 'error') : undefined,
    tookOf({ duration_ms: busyMs }),
  ]
  return {
    id,
    call: worst.id,
    title,
    detail: parts.filter((part) => part !== undefined).join(' · '),
    status: errors > 0 ? 'error' : open > 0 ? 'pending' : 'ok',
  }
}
