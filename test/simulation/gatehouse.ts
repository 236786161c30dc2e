/**
 * Judges what clients show, in the place of the shell (`src/cli/daemon/admissions.ts`), and watches that the bus obeys: who
 * is in, as whom, with which rights, how many, for how long (contract 9.3, 9.5, 9.10, 9.21).
 *
 * Verdicts come late or never, credentials end, rights change at any time. What the bus says of clients must follow from
 * what it was told; its tables are looked at after every event.
 */
import type { Core } from '../../src/kernel/core.ts'
import type { BusEvent } from '../../src/kernel/events.ts'
import { type Identity, LOCAL_IDENTITY, type Rights } from '../../src/kernel/rights.ts'
import { type AccessScenario, drawRights, type SimPrincipal } from './access-scenario.ts'
import { Alarms } from './alarms.ts'
import type { ClientLine, Taken } from './line.ts'
import { Ledger, mayPool } from './rights-model.ts'
import type { SimClient } from './sim-client.ts'
import { demand } from './violation.ts'
import { type Manner, type Offer, type Verdict, Visit } from './visit.ts'
import type { World } from './world.ts'

const ADMISSION_MS = 5_000
/** The shell may be late with a tick. */
const LATE_MS = 200
export const MAX_FIRST_BYTES = 16 * 1_024
const MAX_STRANGERS = 1_024
const MAX_NEIGHBOURS = 256
const LOCAL: SimPrincipal = { id: 'local', name: 'local' }

type Entrance = Pick<Extract<BusEvent, { type: 'client-opened' }>, 'identity' | 'mustProve' | 'from'>

interface Edition {
  /** The event from which on they hold. */
  readonly from: number
  readonly rights: Rights
}

export class Gatehouse {
  readonly alarms = new Alarms()
  readonly #world: World
  readonly #access: AccessScenario
  readonly #editions = new Map<string, Edition[]>()
  readonly #ledgers = new Map<string, Ledger>()
  readonly #offers = new Map<string, Offer>()
  /** Everybody whom the bus may still know, in the order of their coming. */
  readonly #guests = new Set<SimClient>()
  /** Those who have proved nothing, oldest first. */
  readonly #strangers = new Set<SimClient>()
  /** How many each principal had, and how many answers it was owed, when the last event was over. */
  #connections = new Map<string, number>()
  #pending = new Map<string, number>()
  #revoking: SimClient | undefined
  /** Taken in the latest event. */
  #takenLast: ClientLine[] = []
  #tokens = 0
  #isBesieged = false

  constructor(world: World, access: AccessScenario) {
    this.#world = world
    this.#access = access
    this.#editions.set(LOCAL.id, [{ from: 0, rights: LOCAL_IDENTITY.rights }])
    for (const [id, rights] of access.rights) this.#editions.set(id, [{ from: 0, rights }])
  }

  // ---- rights ----

  /** What held when this event was over. */
  rightsAt(principal: SimPrincipal, event: number): Rights {
    return this.rightsSince(principal, event)[0]!
  }

  /** The same, and whatever has held since. */
  rightsSince({ id }: SimPrincipal, event: number): readonly Rights[] {
    const editions = this.#editions.get(id)!
    const first = editions.findLastIndex(({ from }) => from <= event)
    return editions.slice(first).map(({ rights }) => rights)
  }

  rightsNow(principal: SimPrincipal): Rights {
    return this.#editions.get(principal.id)!.at(-1)!.rights
  }

  ledgerOf({ id }: SimPrincipal): Ledger {
    let ledger = this.#ledgers.get(id)
    if (ledger === undefined) this.#ledgers.set(id, (ledger = new Ledger()))
    return ledger
  }

  /** How many answers the principal is owed, as far as its clients know. */
  owedTo({ id }: SimPrincipal): number {
    let owed = 0
    for (const client of this.#guests) if (client.visit!.principal?.id === id) owed += client.owed
    return owed
  }

  // ---- at the door ----

  drawVisit(): Visit {
    const { chance, nowMs } = this.#world
    const { principals, proveShare } = this.#access
    const manner: Manner = chance.is(proveShare) ? chance.weigh(MANNERS) : chance.pick(['local', 'local', 'door'])
    const wanted = chance.pick(principals)
    const visit = new Visit(manner, wanted, `10.0.0.${chance.int(3)}`, nowMs)
    if (manner === 'local') visit.principal = LOCAL
    return visit
  }

  /** How it is received; the bus hears of it next. */
  receive(client: SimClient): Entrance {
    const visit = client.visit!
    this.#guests.add(client)
    if (visit.manner === 'local') return {}
    if (visit.manner === 'door') {
      visit.told = { identity: this.identityOf(visit.principalWanted) }
      return { identity: visit.told.identity, from: visit.from }
    }
    this.#strangers.add(client)
    if (visit.manner === 'certificate') this.#after(() => this.#showCertificate(client))
    return { mustProve: true, from: visit.from }
  }

  #showCertificate(client: SimClient): void {
    const { principalWanted } = client.visit!
    this.#tell(client, { identity: this.identityOf(principalWanted) }, true)
  }

  makeOffer(kind: Offer['kind'], principal: SimPrincipal, isFirst: boolean): Offer {
    const token = kind === 'nothing' ? undefined : `sbus_${kind}${this.#tokens++}`
    const offer: Offer = { token, principal, kind, isFirst, line: undefined }
    if (token !== undefined) this.#offers.set(token, offer)
    return offer
  }

  get principals(): readonly SimPrincipal[] {
    return this.#access.principals
  }

  identityOf(principal: SimPrincipal): Identity {
    const { id, ...named } = principal
    return { principal: id, ...named, via: 'token', rights: this.rightsNow(principal) }
  }

  // ---- what the bus asks for ----

  judge(client: SimClient, token: string | undefined): void {
    const visit = client.visit!
    demand(visit.judging === undefined, 'order kept', () => `${client} is judged, and what follows is taken`)
    const offer = visit.offers.shift()
    demand(
      offer !== undefined && offer.token === token,
      'actions sensible',
      () => `${client} has shown ${offer?.token}, and the bus asks about ${token}`,
    )
    visit.judging = offer
    const isEverJudged = !visit.mustProve || visit.principal !== undefined || this.#world.chance.is(0.85)
    if (isEverJudged) this.#after(() => this.#tell(client, this.#verdictOn(offer), offer.isFirst))
  }

  #after(run: () => void): void {
    const { chance, nowMs } = this.#world
    const delayMs = chance.pick([0, 0, 3, 20, 500])
    this.alarms.set(nowMs + delayMs, run)
  }

  #verdictOn({ kind, principal }: Offer): Verdict {
    if (kind === 'good') return { identity: this.identityOf(principal) }
    if (kind === 'unknowable') return { refusal: { reason: 'keys_unavailable', detail: { retry_after_ms: 5_000 } } }
    return { refusal: { reason: 'unauthenticated', ...(kind === 'expired' ? { detail: { why: 'expired' } } : {}) } }
  }

  #tell(client: SimClient, verdict: Verdict, isFirst: boolean): void {
    const visit = client.visit!
    const peer = this.#world.core?.clients.get(client.id)
    // Whoever has gone is nobody's business; that one is still being judged is no news to the bus.
    if (peer === undefined || client.hasLeft) return
    const isOpen = peer.state === 'open'
    const wasIn = visit.principal
    visit.told = verdict
    const answered = visit.judging
    visit.answered = answered
    visit.judging = undefined
    this.#world.apply({ type: 'client-judged', client: client.id, ...verdict })
    visit.told = undefined
    visit.answered = undefined
    const isStill = this.#world.core!.clients.get(client.id)?.state === 'open'
    if ('refusal' in verdict) {
      demand(!isOpen || !isFirst || !isStill, 'rights kept', () => `${client} is refused, and stays`)
      return
    }
    const { principal } = verdict.identity
    const isOther = wasIn !== undefined && wasIn.id !== principal
    if (!isOpen || visit.turnedAwayFor !== undefined || visit.revokedFrom !== undefined) return
    if (isOther && !isFirst)
      return demand(
        visit.principal === wasIn,
        'rights kept',
        () => `${client} was ${wasIn.id} and is ${visit.principal?.id}`,
      )
    demand(
      visit.principal?.id === principal,
      'goes on',
      () => `${client} has proved to be ${principal}, and is not let in`,
    )
    this.#demandPool(client, answered?.line)
  }

  /** `bus::open` names a pool that there is and that the caller may use, or ends the connection (contract 9.18). */
  #demandPool(client: SimClient, line: ClientLine | undefined): void {
    if (line === undefined || !this.#isBadOpening(client, line)) return
    client.visit!.turnedAwayFor = 'pool'
    const isStill = this.#world.core!.clients.get(client.id)?.state === 'open'
    demand(!isStill, 'rights kept', () => `${client} has opened ${line.pool}`)
  }

  #isBadOpening({ visit }: SimClient, { method, pool }: ClientLine): boolean {
    if (method !== 'bus::open' || pool === undefined || visit!.principal === undefined) return false
    return !mayPool(this.rightsNow(visit!.principal), pool) || !this.#world.spec.pools.some(({ id }) => id === pool)
  }

  admitted(client: SimClient, identity: Identity): void {
    const visit = client.visit!
    const told = visit.told
    if (visit.manner === 'local' && told === undefined) {
      return demand(
        identity.principal === LOCAL.id,
        'rights kept',
        () => `${client} is let in as ${identity.principal}`,
      )
    }
    const isTrue = told !== undefined && 'identity' in told && told.identity === identity
    demand(isTrue, 'rights kept', () => `${client} is let in as ${identity.principal}, which nobody has said`)
    const isGone = visit.turnedAwayFor !== undefined || visit.revokedFrom !== undefined
    demand(!isGone, 'rights kept', () => `${client} was turned away, and is let in`)
    const { maxConnections } = identity.rights
    const isNew = visit.principal?.id !== identity.principal
    const others = this.#connections.get(identity.principal) ?? 0
    const hasRoom = !isNew || maxConnections === undefined || others < maxConnections
    demand(hasRoom, 'bounded', () => `${client} is let in beside ${others} others of ${identity.principal}`)
    visit.principal = this.#access.principals.find(({ id }) => id === identity.principal)!
    this.#strangers.delete(client)
  }

  turnedAway(client: SimClient, reason: string): void {
    const visit = client.visit!
    this.#world.countReason(`turned away: ${reason}`)
    const isTrue = REFUSALS[reason]?.(this, client, visit) === true
    demand(isTrue, 'justified', () => `${client} is turned away for ${reason}`)
    const isLater = visit.answered?.isFirst === false && this.#revoking !== client
    this.#strangers.delete(client)
    if (!isLater) visit.turnedAwayFor ??= reason
  }

  isRevoked(client: SimClient): boolean {
    return this.#revoking === client
  }

  /** The oldest gives way, of an address or of all. */
  isOldestOfCrowd(client: SimClient): boolean {
    const all = [...this.#strangers]
    const neighbours = all.filter(({ visit }) => visit!.from === client.visit!.from)
    // Those who are being closed for something else are there until they have gone.
    const isOldest = (among: readonly SimClient[]): boolean =>
      among.find((each) => each === client || this.#isOpen(each)) === client
    return (neighbours.length > MAX_NEIGHBOURS && isOldest(neighbours)) || (all.length > MAX_STRANGERS && isOldest(all))
  }

  #isOpen({ id }: SimClient): boolean {
    return this.#world.core?.clients.get(id)?.state === 'open'
  }

  isFull(principal: SimPrincipal): boolean {
    const { maxConnections } = this.rightsNow(principal)
    return maxConnections !== undefined && (this.#connections.get(principal.id) ?? 0) >= maxConnections
  }

  get world(): World {
    return this.#world
  }

  // ---- what happens at any time ----

  step(): void {
    const { chance, isStopping } = this.#world
    if (isStopping) return
    const { siege } = this.#access
    if (siege !== undefined && !this.#isBesieged && chance.is(0.1)) return this.#besiege(siege)
    if (chance.is(0.5)) return this.#changeRights(chance.pick(this.#access.principals))
    const inside = [...this.#guests].filter(({ visit, isOver, hasLeft }) => {
      return visit!.principal !== undefined && visit!.manner !== 'local' && !isOver && !hasLeft
    })
    if (inside.length > 0) this.#revoke(chance.pick(inside))
  }

  #besiege({ clients, addresses }: NonNullable<AccessScenario['siege']>): void {
    const { nowMs } = this.#world
    this.#isBesieged = true
    for (let i = 0; i < clients; i++) {
      const from = `10.1.0.${i % addresses}`
      this.#world.openStranger(new Visit('silent', this.#access.principals[0]!, from, nowMs))
    }
  }

  #changeRights(principal: SimPrincipal): void {
    const { chance, spec, events } = this.#world
    const before = this.rightsNow(principal)
    const drawn = drawRights(
      chance,
      spec.pools.map(({ id }) => id),
    )
    // Mostly something else than the pools changes.
    const rights = chance.is(0.4) ? drawn : { ...drawn, role: before.role, pools: before.pools }
    this.#editions.get(principal.id)!.push({ from: events + 1, rights })
    if (rights.rate !== before.rate) this.ledgerOf(principal).change()
    for (const client of this.#guests) {
      if (client.visit!.principal !== principal) continue
      for (const { idAtWorker, worker } of this.#world.core?.clients.get(client.id)?.sessions.values() ?? [])
        if (!mayPool(rights, worker.pool.spec.id)) client.endedEarly.add(idAtWorker)
      if (!mayPool(rights, client.pool)) client.forgetSessions()
    }
    this.#world.apply({ type: 'rights-changed', principal: principal.id, rights })
    this.#demandLeft(principal, rights)
  }

  /** Sessions and subscriptions in a lost pool end (contract 9.10). */
  #demandLeft(principal: SimPrincipal, rights: Rights): void {
    const { core } = this.#world
    for (const { id, visit } of this.#guests) {
      const peer = core?.clients.get(id)
      if (peer === undefined || visit!.principal !== principal) continue
      for (const { worker } of peer.sessions.values())
        demand(
          mayPool(rights, worker.pool.spec.id),
          'rights kept',
          () => `client ${id} keeps a session in ${worker.pool.spec.id}`,
        )
      for (const worker of core!.workers.values())
        for (const subscribers of worker.subscriptions.values())
          demand(
            !subscribers.has(peer) || mayPool(rights, worker.pool.spec.id),
            'rights kept',
            () => `client ${id} keeps a subscription in ${worker.pool.spec.id}`,
          )
    }
  }

  #revoke(client: SimClient): void {
    const visit = client.visit!
    const peer = this.#world.core?.clients.get(client.id)
    if (peer === undefined || peer.state !== 'open') return
    this.#revoking = client
    visit.revokedFrom = this.#world.lines.length
    client.forgetSessions()
    this.#world.apply({ type: 'client-revoked', client: client.id, isExpired: this.#world.chance.is(0.5) })
    this.#revoking = undefined
    const after = this.#world.core!.clients.get(client.id)
    const isEnded = after === undefined || (after.state !== 'open' && after.pendingCount === 0)
    demand(isEnded, 'rights kept', () => `the credential of ${client} has ended, and it stays`)
  }

  // ---- what must hold ----

  noteTaken(client: SimClient, line: ClientLine): void {
    const { principal } = client.visit!
    const { events, nowMs } = this.#world
    if (line.taken !== undefined) return
    line.taken = { principal, event: events, owed: principal === undefined ? 0 : this.owedTo(principal) }
    this.#noteTogether(line, line.taken)
    const isThere = this.#world.core?.clients.has(client.id) === true
    if (isThere && line.offer === undefined && this.#isBadOpening(client, line)) {
      client.visit!.turnedAwayFor = 'pool'
      client.isDeafened = true
    }
    if (principal === undefined || !isCharged(line)) return
    this.ledgerOf(principal).note(line, nowMs, this.rightsAt(principal, events).rate)
  }

  /** An event may let several clients go on: whom of them the bus has listened to first cannot be seen. */
  #noteTogether(line: ClientLine, { principal, event }: Taken): void {
    if (this.#takenLast[0]?.taken?.event !== event) this.#takenLast = []
    if (line.kind === 'request')
      for (const { author, taken } of this.#takenLast)
        if (author !== line.author && taken!.principal === principal) taken!.owed++
    this.#takenLast.push(line)
  }

  /** After every event. */
  inspect(core: Core): void {
    const connections = new Map<string, number>()
    const pending = new Map<string, number>()
    for (const client of this.#guests) {
      const peer = core.clients.get(client.id)
      const { principal, judging } = client.visit!
      if (peer === undefined) {
        for (const line of client.unconsumed) this.noteTaken(client, line)
        this.#guests.delete(client)
        this.#strangers.delete(client)
        continue
      }
      if (principal === undefined) {
        const isBare = peer.sessions.size + peer.introductions.size === 0 && peer.pendingCount <= 1
        demand(isBare, 'rights kept', () => `${client} has proved nothing and is served`)
        continue
      }
      add(connections, principal.id, 1)
      // Who shows who it is, is owed an answer for that too.
      add(pending, principal.id, peer.pendingCount - (judging?.line?.kind === 'request' ? 1 : 0))
    }
    for (const [id, count] of pending) {
      const { maxPending = Number.POSITIVE_INFINITY } = this.#editions.get(id)!.at(-1)!.rights
      const isMore = count > maxPending && count > (this.#pending.get(id) ?? 0)
      // Whoever changes hands brings along what it has asked before.
      const isSame = connections.get(id) === this.#connections.get(id)
      demand(!isMore || !isSame, 'bounded', () => `${id} has ${count} unanswered requests`)
    }
    this.#connections = connections
    this.#pending = pending
    this.#demandFew()
  }

  #demandFew(): void {
    if (this.#strangers.size <= MAX_NEIGHBOURS) return
    const open = [...this.#strangers].filter((client) => this.#isOpen(client))
    const size = open.length
    demand(size <= MAX_STRANGERS, 'bounded', () => `${size} strangers are there`)
    const counts = new Map<string, number>()
    for (const { visit } of open) add(counts, visit!.from, 1)
    for (const [from, count] of counts)
      demand(count <= MAX_NEIGHBOURS, 'bounded', () => `${count} strangers from ${from} are there`)
  }

  /** When everything that was due has been done. */
  inspectTimes(): void {
    const { nowMs, isStopping } = this.#world
    if (isStopping) return
    for (const client of this.#strangers) {
      if (!this.#isOpen(client)) continue
      const ageMs = nowMs - client.visit!.openedAtMs
      demand(ageMs <= ADMISSION_MS + LATE_MS, 'bounded', () => `${client} has proved nothing for ${ageMs} ms`)
    }
  }

  /** Now and then, and when all is over. */
  inspectRates(): void {
    for (const [id, ledger] of this.#ledgers) {
      const line = ledger.excess()
      demand(line === undefined, 'rights kept', () => `${id} has sent more than its rate: ${line?.text}`)
    }
  }
}

const MANNERS: readonly (readonly [number, Manner])[] = [
  [10, 'token'],
  [3, 'certificate'],
  [0.5, 'none'],
  [0.5, 'rude'],
  [0.3, 'huge'],
  [0.5, 'silent'],
]

type IsTrue = (house: Gatehouse, client: SimClient, visit: Visit) => boolean

/** What the bus may turn a client away for. */
const REFUSALS: Readonly<Record<string, IsTrue>> = {
  unauthenticated: (house, client, visit) => {
    const isStranger = visit.mustProve && visit.principal === undefined
    const isLate = isStranger && house.world.nowMs - visit.openedAtMs >= ADMISSION_MS
    return isTold(visit, 'unauthenticated') || isLate || house.isRevoked(client) || house.isOldestOfCrowd(client)
  },
  keys_unavailable: (_house, _client, visit) => isTold(visit, 'keys_unavailable'),
  not_allowed: (_house, _client, { told, principal, answered }) =>
    told !== undefined &&
    'identity' in told &&
    principal !== undefined &&
    told.identity.principal !== principal.id &&
    answered?.isFirst === false,
  too_many_clients: (house, _client, { told }) =>
    told !== undefined &&
    'identity' in told &&
    house.isFull(house.principals.find(({ id }) => id === told.identity.principal)!),
}

function isTold({ told }: Visit, reason: string): boolean {
  return told !== undefined && 'refusal' in told && told.refusal.reason === reason
}

/** Answers, cancels, `ping` and the end of a handshake cost nothing; the bus's own methods go to nobody. */
const FREE: ReadonlySet<string> = new Set([
  'ping',
  'notifications/initialized',
  'notifications/cancelled',
  '$/cancel_request',
])

function isCharged({ kind, method }: ClientLine): boolean {
  return (kind === 'request' || kind === 'notification') && !FREE.has(method) && !method.startsWith('bus::')
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}
