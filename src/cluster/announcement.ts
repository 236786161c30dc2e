/**
 * What a node says of itself twice a second, and what is asked of a name before it is taken (contract 14.1, 14.2).
 *
 * What others have said is believed field by field, within bounds; fields that are not known are ignored (contract 14.11).
 */
import { CLUSTER } from './limits.ts'
import { MAX_EPOCH, PROTOCOL } from './message.ts'
import { AT_NODE } from './names.ts'

export interface AnnouncedPool {
  readonly id: string
  readonly protocol: string
  readonly era: string
  /** How many more clients it can take now, or at least that it can. */
  readonly ready: number
  readonly workers: number
  readonly outstanding: number
  readonly streams: number
  readonly sessions: number
  /** The longest line of its workers. */
  readonly maxLineBytes: number
  /** What another node's agent would not know, it knows (contract 14.6). */
  readonly isPortable: boolean
}

export type NodeState = 'ready' | 'leaving' | 'left'

export interface Announcement {
  /** The versions of the protocol that it speaks. */
  readonly lowest: number
  readonly highest: number
  readonly version: string
  /** Of this run; another one has another. */
  readonly run: number
  /** How many words of this run there were, with this one; 0: it does not count them. */
  readonly number: number
  readonly state: NodeState
  readonly pools: readonly AnnouncedPool[]
  readonly agents: readonly string[]
}

/** What a message for people and programs of other nodes is about; frames are no JSON. */
export type Control = { readonly say: 'here'; readonly announcement: Announcement } | { readonly say: 'who' }

const BRACE = 0x7b
const STATES: ReadonlySet<unknown> = new Set<NodeState>(['ready', 'leaving', 'left'])
/** And as many agents. */
export const MAX_POOLS = 1_024
const MAX_NAME = 128
const MAX_LINE_BYTES = 2 ** 31
/** Control characters are in no name of a pool. */
const PRINTABLE = /^\P{Cc}{1,128}$/u

export function isControl(message: Buffer): boolean {
  return message[0] === BRACE
}

export function writeWho(): Buffer {
  return Buffer.from('{"say":"who"}')
}

export function writeAnnouncement(own: Announcement): Buffer {
  const { lowest, highest, version, run, number, state, agents } = own
  const pools = own.pools.map((pool) => [
    pool.id,
    pool.protocol,
    pool.era,
    pool.ready,
    pool.workers,
    pool.outstanding,
    pool.streams,
    pool.sessions,
    pool.maxLineBytes,
    pool.isPortable ? 1 : 0,
  ])
  const word = { say: 'here', speaks: [lowest, highest], version, run, number, state, pools, agents }
  return Buffer.from(JSON.stringify(word))
}

/** Undefined: it is none. */
export function readControl(message: Buffer): Control | undefined {
  if (message.length > CLUSTER.maxAnnouncementBytes) return undefined
  let said: unknown
  try {
    said = JSON.parse(message.toString('utf8'))
  } catch {
    return undefined
  }
  const fields = said as Record<string, unknown>
  if (fields['say'] === 'who') return { say: 'who' }
  const announcement = fields['say'] === 'here' ? readAnnouncement(fields) : undefined
  return announcement === undefined ? undefined : { say: 'here', announcement }
}

function readAnnouncement(fields: Record<string, unknown>): Announcement | undefined {
  const { speaks, version, run, number = 0, state, pools, agents } = fields
  if (!Array.isArray(speaks) || !isCount(speaks[0]) || !isCount(speaks[1])) return undefined
  if (!isName(version) || !isCount(run) || run > MAX_EPOCH || !isCount(number) || !STATES.has(state)) return undefined
  // A version that we do not speak may say the rest otherwise.
  const known = commonVersion({ lowest: speaks[0], highest: speaks[1] }) !== undefined
  const rows = known ? readPools(pools) : []
  const names = known ? readNames(agents) : []
  if (rows === undefined || names === undefined) return undefined
  const [lowest, highest] = speaks as [number, number]
  return { lowest, highest, version, run, number, state: state as NodeState, pools: rows, agents: names }
}

/** The highest version that both speak. */
export function commonVersion(other: { readonly lowest: number; readonly highest: number }): number | undefined {
  const highest = Math.min(PROTOCOL.highest, other.highest)
  return highest >= Math.max(PROTOCOL.lowest, other.lowest) ? highest : undefined
}

function readPools(pools: unknown): AnnouncedPool[] | undefined {
  if (!Array.isArray(pools) || pools.length > MAX_POOLS) return undefined
  const rows = pools.map(readPool)
  return rows.every((row) => row !== undefined) ? rows : undefined
}

function readPool(row: unknown): AnnouncedPool | undefined {
  if (!Array.isArray(row)) return undefined
  const [id, protocol, era, ready, workers, outstanding, streams, sessions, maxLineBytes, isPortable] = row
  if (!isName(id) || !isName(protocol) || !isName(era)) return undefined
  // It would be the pool of another node.
  if (id.includes(AT_NODE)) return undefined
  if (![ready, workers, outstanding, streams, sessions, maxLineBytes].every(isCount)) return undefined
  const counts = { ready, workers, outstanding, streams, sessions }
  return {
    id,
    protocol,
    era,
    ...counts,
    maxLineBytes: Math.min(maxLineBytes, MAX_LINE_BYTES),
    isPortable: isPortable === 1,
  }
}

function readNames(names: unknown): string[] | undefined {
  if (!Array.isArray(names) || names.length > MAX_POOLS) return undefined
  return names.every(isName) ? names : undefined
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_NAME && PRINTABLE.test(value)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
