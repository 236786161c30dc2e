/**
 * What a stream is begun with: for which pool, and for whom (contract 14.4, 14.9).
 *
 * The principal goes along with its name, its role (nobody is more than a user elsewhere), its pools and its tools; no
 * credential and no variable ever does. Whoever is only
 * known on its own machine is known elsewhere with the name of that machine.
 */
import type { Rights, Role, ToolRights } from '../kernel/rights.ts'
import type { CallCause } from '../kernel/vocabulary.ts'
import { CLUSTER } from './limits.ts'

export type TravellingRole = Exclude<Role, 'admin'>

export interface Opening {
  readonly pool: string
  readonly principal: string
  readonly name: string
  readonly role: TravellingRole
  readonly pools: readonly string[]
  readonly tools?: ToolRights
  /** The ids of the buses through which it came. */
  readonly vias: readonly (readonly string[])[]
  /** An agent calls another. */
  readonly cause?: CallCause
}

/** Who it is at home. */
export interface Traveller {
  readonly principal: string
  readonly name: string
  readonly rights: Rights
  readonly vias: readonly (readonly string[])[]
  readonly cause?: CallCause
}

export interface Home {
  readonly node: string
  /** By which whoever is on this machine is known elsewhere. */
  readonly local: string | undefined
  readonly busId: string
}

const HOMELY: ReadonlySet<string> = new Set(['local', 'anonymous'])
const TRAVELS_AS: Readonly<Record<Role, TravellingRole>> = { admin: 'user', user: 'user', observer: 'observer' }
const OTEL_TRACE_ID = /^[0-9a-f]{32}$/
const MAX_NAMES = 256
const MAX_NAME = 512

export function openingFor(pool: string, who: Traveller, home: Home): Opening {
  const { rights } = who
  const travels = (name: string): string => {
    if (name === 'local' && home.local !== undefined) return home.local
    return HOMELY.has(name) ? `${name}@${home.node}` : name
  }
  const vias = who.vias.length === 0 ? [[home.busId]] : who.vias.map((via) => [...via, home.busId])
  return {
    pool,
    principal: travels(who.principal),
    name: travels(who.name),
    role: TRAVELS_AS[rights.role],
    pools: rights.pools,
    ...(rights.tools === undefined ? {} : { tools: rights.tools }),
    vias,
    ...(who.cause === undefined ? {} : { cause: who.cause }),
  }
}

/** Undefined: it does not fit; whoever has so many rights cannot go elsewhere. */
export function writeOpening(opening: Opening, mostBytes: number = CLUSTER.maxOpeningBytes): Buffer | undefined {
  const bytes = Buffer.from(JSON.stringify(opening))
  return bytes.length > mostBytes ? undefined : bytes
}

/** Undefined: it is none. */
export function readOpening(bytes: Buffer): Opening | undefined {
  let said: unknown
  try {
    said = JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
  if (typeof said !== 'object' || said === null) return undefined
  const { pool, principal, name, role, pools, tools, vias, cause } = said as Record<string, unknown>
  if (!isName(pool) || !isName(principal) || !isName(name) || !isRole(role) || !areNames(pools)) return undefined
  const toolRights = readTools(tools)
  if (toolRights === undefined || !Array.isArray(vias) || vias.length > MAX_NAMES || !vias.every(areNames))
    return undefined
  const known = cause === undefined ? undefined : readCause(cause)
  if (cause !== undefined && known === undefined) return undefined
  const who = { principal, name, role: TRAVELS_AS[role] }
  return { pool, ...who, pools, ...toolRights, vias, ...(known === undefined ? {} : { cause: known }) }
}

function readCause(cause: unknown): CallCause | undefined {
  if (typeof cause !== 'object' || cause === null) return undefined
  const { callId, depth, agent, otelTraceId } = cause as Record<string, unknown>
  if ((callId !== null && !isCount(callId)) || !isCount(depth)) return undefined
  if (agent !== undefined && !isName(agent)) return undefined
  if (otelTraceId !== undefined && (typeof otelTraceId !== 'string' || !OTEL_TRACE_ID.test(otelTraceId)))
    return undefined
  return {
    callId,
    depth,
    ...(agent === undefined ? {} : { agent }),
    ...(otelTraceId === undefined ? {} : { otelTraceId }),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function readTools(tools: unknown): { readonly tools?: ToolRights } | undefined {
  if (tools === undefined) return {}
  if (typeof tools !== 'object' || tools === null) return undefined
  const { allow, deny } = tools as Record<string, unknown>
  if ((allow !== undefined && !areNames(allow)) || (deny !== undefined && !areNames(deny))) return undefined
  return { tools: { ...(allow === undefined ? {} : { allow }), ...(deny === undefined ? {} : { deny }) } }
}

function isRole(value: unknown): value is Role {
  return typeof value === 'string' && Object.hasOwn(TRAVELS_AS, value)
}

function areNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= MAX_NAMES && value.every(isName)
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= MAX_NAME
}
