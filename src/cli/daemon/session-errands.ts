/**
 * Lists of sessions, asked of this node and of all others that have the pool (contract 14.6).
 *
 * Each node is asked as the client that wants to know, so each judges what that client may see. Nobody is waited for longer
 * than the table says, and who was silent is named.
 */
import { CLUSTER } from '../../cluster/limits.ts'
import type { Guest } from '../../kernel/bus.ts'
import type { Action } from '../../kernel/events.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'
import { Errand, type ErrandWay } from './errand.ts'
import {
  AGENT_LIST,
  BUS_LIST,
  type Gathered,
  type ListWords,
  listAt,
  mergeLists,
  paramsForNodes,
  type Told,
} from './gathering.ts'

export type Asked = Extract<Action, { do: 'gather' }>

/** A node, and what of it may be seen from here. */
export interface NodePools {
  readonly node: string
  readonly pools: readonly PoolId[]
  readonly isLost: boolean
}

export interface ErrandHost {
  /** This node first, if it has any pool. */
  nodes(): readonly NodePools[]
  /** Speaks there as the client; undefined: the node is not there. */
  open(node: string, pool: PoolId, who: Guest, errand: Errand): ErrandWay | undefined
}

type Row = Readonly<Record<string, unknown>>

export async function gatherSessions(asked: Asked, who: Guest, host: ErrandHost): Promise<Gathered> {
  const { pool, bytes, initialize } = asked
  const words = pool === undefined ? BUS_LIST : AGENT_LIST
  const wish = paramsIn(bytes)
  const wanted = pool ?? (typeof wish['pool'] === 'string' ? wish['pool'] : undefined)
  const nodes = host.nodes().filter(({ pools }) => (wanted === undefined ? pools.length > 0 : pools.includes(wanted)))
  const ask = async ({ node, pools, isLost }: NodePools): Promise<Told> => {
    if (isLost) return { node }
    const errand = new Errand({ waitMs: CLUSTER.listWaitMs, maxBytes: CLUSTER.maxListBytes })
    errand.way = host.open(node, wanted ?? pools[0]!, who, errand)
    try {
      if (words === AGENT_LIST && initialize !== undefined) await errand.ask('initialize', paramsIn(initialize))
      const told = await listAt(node, errand, words, paramsForNodes(words, wish))
      return words === BUS_LIST ? seenOf(told, pools) : told
    } finally {
      errand.end()
    }
  }
  return mergeLists(await Promise.all(nodes.map(ask)), words as ListWords, wish)
}

/** Of another node nothing is told that it does not export, or that is not imported; and where it is, is said. */
function seenOf(told: Told, pools: readonly PoolId[]): Told {
  if (told.rows === undefined) return told
  const rows = told.rows
    .filter(({ pool }) => pools.includes(pool as PoolId))
    .map((row) => ({ ...row, node: told.node }))
  return { ...told, rows }
}

function paramsIn(bytes: Buffer): Row {
  const { params } = JSON.parse(bytes.toString('utf8')) as { params?: unknown }
  return typeof params === 'object' && params !== null && !Array.isArray(params) ? (params as Row) : {}
}
