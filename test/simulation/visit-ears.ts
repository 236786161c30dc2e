/**
 * Whether what goes through a bus that tells its callers apart is within their rights: what a worker hears, what a client
 * hears, and why it is refused (contract 9.3, 9.5, 9.18 to 9.21).
 */
import type { Reason } from '../../src/kernel/faults.ts'
import type { ClientLine, WorkerLine } from './line.ts'
import { mayPool, mayTool } from './rights-model.ts'
import type { SimClient } from './sim-client.ts'
import type { SimWorker } from './sim-worker.ts'
import { demand } from './violation.ts'

// ---- workers ----

/** The message was allowed when the bus took it; where another pool serves in the place of its own, that one too. */
export function demandRight(worker: SimWorker, line: ClientLine, text: string): void {
  const { gatehouse, lines } = worker.world
  const { author, taken, kind, method, tool } = line
  if (gatehouse === undefined) return
  const principal = taken?.principal
  const isIn = taken !== undefined && principal !== undefined
  demand(isIn, 'rights kept', () => `${author} has proved nothing, and ${worker} got ${text}`)
  demand(!text.includes('"sbus_'), 'rights kept', () => `${worker} got a credential: ${text}`)
  if (kind === 'response') return
  const rights = gatehouse.rightsAt(principal, taken.event)
  const pool = line.pool ?? author.pool
  const say = (what: string) => (): string => `${author} is ${principal.id}, ${what}, and ${worker} got ${text}`
  demand(rights.role !== 'observer', 'rights kept', say('an observer'))
  // A session says where its messages go, whatever pool they name.
  const isNamed = line.sessions.length === 0
  demand(!isNamed || mayPool(rights, pool), 'rights kept', say(`not for ${pool}`))
  const since = gatehouse.rightsSince(principal, taken.event)
  const isServed = since.some((each) => mayPool(each, worker.pool))
  demand(isServed, 'rights kept', say(`not for ${worker.pool}`))
  const isRevoked = author.visit!.revokedFrom !== undefined && line.serial >= lines.length
  demand(!isRevoked, 'rights kept', say('revoked'))
  if (method !== 'tools/call') return
  demand(mayTool(rights, pool, tool), 'rights kept', say(`not for the tool ${tool}`))
  const isUsable = since.some((each) => mayTool(each, worker.pool, tool))
  demand(isUsable, 'rights kept', say(`not for the tool ${tool} of ${worker.pool}`))
}

// ---- clients ----

/** Nobody hears a worker who is not in, or is in no more. */
export function demandIn(client: SimClient, line: WorkerLine, text: string): void {
  const { principal, revokedFrom } = client.visit!
  demand(principal !== undefined, 'rights kept', () => `${client} has proved nothing and got ${text}`)
  const isLate = revokedFrom !== undefined && line.serial >= revokedFrom
  demand(!isLate, 'rights kept', () => `the credential of ${client} has ended, and it got ${text}`)
}

/** How the list of tools may look by the rights that have held meanwhile (contract 9.20). */
export function listsFor(
  client: SimClient,
  request: ClientLine,
  line: WorkerLine,
  idRaw: string | undefined,
): string[] {
  const { gatehouse } = client.world
  const { principal, event } = request.taken!
  if (gatehouse!.rightsAt(principal!, event).tools === undefined) return [line.render(idRaw, line.innerRaw)]
  return gatehouse!.rightsSince(principal!, event).map((rights) => {
    const shown = line.tools!.filter(({ name }) => name !== undefined && mayTool(rights, line.author.pool, name))
    const text = line.render(idRaw, shown.map(({ raw }) => raw).join(','))
    return text.replace('"cacheScope":"public"', '"cacheScope":"private"')
  })
}

const TURNING_AWAY: ReadonlySet<string> = new Set([
  'unauthenticated',
  'keys_unavailable',
  'not_allowed',
  'too_many_clients',
  'unknown_pool',
])

/** The last words to somebody who is turned away, or whose credential has ended. */
export function isTurnedAway(client: SimClient, reason: Reason, id: unknown): boolean {
  const visit = client.visit!
  if (id !== null || !TURNING_AWAY.has(reason)) return false
  const isTrue = visit.turnedAwayFor === reason || (visit.turnedAwayFor === 'pool' && isAboutPool(reason))
  if (!isTrue && reason === 'too_many_clients') return false
  demand(isTrue, 'justified', () => `${client} is told ${reason}, and was turned away for ${visit.turnedAwayFor}`)
  demand(!client.isRefused, 'answered once', () => `${client} is told twice that it is turned away`)
  client.isRefused = true
  return true
}

function isAboutPool(reason: Reason): boolean {
  return reason === 'not_allowed' || reason === 'unknown_pool'
}

/** Whoever is let in hears as whom, and in which role. */
export function demandGreeting(client: SimClient, { method, taken, offer }: ClientLine, result: unknown): void {
  if (method !== 'bus::open' && method !== 'bus::whoami') return
  const { gatehouse } = client.world
  const heard = result as { principal: string; subject?: string; role: string }
  const { principal } = client.visit!
  const isNamed = principal !== undefined && heard.principal === principal.name && heard.subject === principal.subject
  const isKnown = isNamed || offer !== undefined
  demand(isKnown, 'rights kept', () => `${client} is ${principal?.id} and is told ${JSON.stringify(result)}`)
  if (principal === undefined) return
  const roles = gatehouse!.rightsSince(principal, taken!.event).map(({ role }) => role)
  const isRole = !isNamed || (roles as string[]).includes(heard.role)
  demand(isRole, 'rights kept', () => `${client} is ${roles} and is told ${JSON.stringify(result)}`)
}

/** Only what the caller may use is named to it (contract 9.18). */
export function demandDiscreet(client: SimClient, line: ClientLine, pools: readonly string[], text: string): void {
  const { gatehouse } = client.world
  const { principal = client.visit!.principal, event } = line.taken!
  if (principal === undefined) return
  const since = gatehouse!.rightsSince(principal, event)
  for (const pool of pools) {
    const isHis = since.some((rights) => mayPool(rights, pool))
    demand(isHis, 'rights kept', () => `${client} is told of ${pool}: ${text}`)
  }
}

// ---- reasons ----

export function isDenied({ visit, pool: own, world }: SimClient, line: ClientLine): boolean {
  const { gatehouse } = world
  const { taken, offer, method, tool } = line
  if (gatehouse === undefined || taken === undefined) return false
  const principal = offer?.isFirst ? offer.principal : (taken.principal ?? visit!.principal)
  if (principal === undefined) return false
  const pool = line.pool ?? own
  const since = gatehouse.rightsSince(principal, taken.event)
  if (method === 'bus::open') {
    const isOther = offer !== undefined && !offer.isFirst && offer.principal !== visit!.principal
    return isOther || (line.pool !== undefined && since.some((rights) => !mayPool(rights, pool)))
  }
  const rights = since[0]!
  if (rights.role === 'observer' || !mayPool(rights, pool)) return true
  return method === 'tools/call' && !mayTool(rights, pool, tool)
}

/** An unknown pool is one that it might use. */
export function mayKnow({ world, visit }: SimClient, { taken, pool }: ClientLine): boolean {
  const principal = taken?.principal ?? visit?.principal
  if (world.gatehouse === undefined || taken === undefined || principal === undefined || pool === undefined) return true
  return world.gatehouse.rightsSince(principal, taken.event).some((rights) => mayPool(rights, pool))
}

export function isOverRate({ world }: SimClient, line: ClientLine): boolean {
  const principal = line.taken?.principal
  return principal !== undefined && world.gatehouse!.ledgerOf(principal).mayLack(line)
}

export function isPrincipalBusy({ world }: SimClient, { taken }: ClientLine): boolean {
  if (taken?.principal === undefined) return false
  const { maxPending } = world.gatehouse!.rightsAt(taken.principal, taken.event)
  return maxPending !== undefined && taken.owed >= maxPending
}

export function isUnproved({ visit }: SimClient, line: ClientLine): boolean {
  if (visit === undefined) return false
  if (visit.revokedFrom !== undefined || line.taken?.principal === undefined) return true
  return line.offer !== undefined && (line.offer.kind === 'bad' || line.offer.kind === 'expired')
}

export function isUnlisted(_client: SimClient, { method, isListless, receiver }: ClientLine): boolean {
  return method === 'tools/list' && (isListless || receiver?.temper === 'lying')
}
