/**
 * Who is connected, in the sense of contract 9: one row per principal, over all its doors and connections.
 *
 * A row says what its principal may do and counts what it uses; it knows no credential. Rows of those who have gone are kept
 * while their rate is not rested, so that nobody gets a new one by coming again. Invariant: a client that is admitted stands
 * in exactly one row.
 */
import { FIXED } from './limits.ts'
import type { Client } from './peers.ts'
import type { Pool } from './pools.ts'
import { type Identity, LOCAL_IDENTITY, matchesAny, mayUsePool, mayUseTool, type Rights } from './rights.ts'
import type { PoolId, Principal } from './vocabulary.ts'

export class PrincipalRow {
  readonly id: Principal
  /** By which its row is found. */
  readonly key: string
  /** Whose rights and environment it has. */
  readonly name: string
  readonly clients = new Set<Client>()
  /** Its branches, by the pool that they belong to (contract 9.22). */
  readonly branches = new Map<Pool, Pool>()
  /** How often it was refused something that it has no right to. */
  refused = 0
  #rights: Rights
  #isUnbound = false
  #verdicts = new WeakMap<Pool, boolean>()
  /** Of tools that were called lately, by pool. */
  #toolVerdicts = new WeakMap<Pool, Map<string, boolean>>()
  /** What is left of its rate, and when that was. */
  #left: number
  #leftAtMs: number

  constructor(identity: Identity, nowMs: number) {
    const { principal, name, rights } = identity
    this.id = principal
    this.key = keyOf(identity)
    this.name = name
    this.#rights = rights
    this.#left = rights.rate?.count ?? 0
    this.#leftAtMs = nowMs
    this.adopt(rights, nowMs)
  }

  get rights(): Rights {
    return this.#rights
  }

  /** Nothing of what it sends needs a look. */
  get isUnbound(): boolean {
    return this.#isUnbound
  }

  adopt(rights: Rights, nowMs: number): void {
    this.#changeRate(this.#rights.rate, rights.rate, nowMs)
    this.#rights = rights
    this.#verdicts = new WeakMap()
    this.#toolVerdicts = new WeakMap()
    const { role, pools, tools, rate, maxPending, environmentFor } = rights
    const isBounded = (tools ?? rate ?? maxPending ?? environmentFor) !== undefined
    this.#isUnbound = role !== 'observer' && pools.includes('*') && !isBounded
  }

  /** What was used stays used: a bucket that grows has the more in it, one that shrinks is full at the most. */
  #changeRate(before: Rights['rate'], rate: Rights['rate'], nowMs: number): void {
    if (rate === undefined) return
    if (before !== undefined) this.#refill(before, nowMs)
    const gained = before === undefined ? rate.count : Math.max(0, rate.count - before.count)
    this.#left = Math.min(this.#left + gained, rate.count)
    this.#leftAtMs = nowMs
  }

  /** Workers that are started for it in this pool have variables of its own. */
  hasEnvironmentIn(pool: PoolId): boolean {
    return matchesAny(this.#rights.environmentFor ?? [], pool)
  }

  mayName(pool: PoolId): boolean {
    return mayUsePool(this.#rights, pool)
  }

  mayUse(pool: Pool): boolean {
    const known = this.#verdicts.get(pool)
    if (known !== undefined) return known
    const verdict = this.mayName(pool.spec.placeOf ?? pool.spec.id)
    this.#verdicts.set(pool, verdict)
    return verdict
  }

  /** The same tools are called again and again: patterns are looked at once for each. */
  mayCall(pool: Pool, tool: string): boolean {
    let verdicts = this.#toolVerdicts.get(pool)
    const known = verdicts?.get(tool)
    if (known !== undefined) return known
    const verdict = mayUseTool(this.#rights, pool.spec.placeOf ?? pool.spec.id, tool)
    if (verdicts === undefined || verdicts.size >= FIXED.maxToolVerdicts) {
      verdicts = new Map()
      this.#toolVerdicts.set(pool, verdicts)
    }
    if (tool.length <= FIXED.maxToolVerdictLength) verdicts.set(tool, verdict)
    return verdict
  }

  /** Takes one from its rate; the time until there is one, if there is none. */
  spend(nowMs: number): number {
    const { rate } = this.#rights
    if (rate === undefined) return 0
    this.#refill(rate, nowMs)
    if (this.#left < 1) return Math.ceil(((1 - this.#left) * rate.perMs) / rate.count)
    this.#left--
    return 0
  }

  isRested(nowMs: number): boolean {
    const { rate } = this.#rights
    if (rate === undefined) return true
    this.#refill(rate, nowMs)
    return this.#left >= rate.count
  }

  get pendingCount(): number {
    let count = 0
    for (const client of this.clients) count += client.pendingCount
    return count
  }

  #refill({ count, perMs }: NonNullable<Rights['rate']>, nowMs: number): void {
    this.#left = Math.min(count, this.#left + ((nowMs - this.#leftAtMs) * count) / perMs)
    this.#leftAtMs = nowMs
  }
}

export class Principals {
  readonly #nowMs: () => number
  readonly #rows = new Map<Principal, PrincipalRow>()
  /** Without a connection, longest absent first. */
  readonly #absent = new Set<PrincipalRow>()
  readonly local: PrincipalRow

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
    this.local = this.#rowOf(LOCAL_IDENTITY)
  }

  get rows(): Iterable<PrincipalRow> {
    return this.#rows.values()
  }

  find(principal: Principal): PrincipalRow | undefined {
    return this.#rows.get(principal)
  }

  /** The client is this principal's; false: that has as many connections as it may. */
  join(client: Client, identity: Identity): boolean {
    const row = this.#rowOf(identity)
    const { maxConnections } = row.rights
    if (client.owner !== row && maxConnections !== undefined && row.clients.size >= maxConnections) return false
    // Whoever shows a fresh credential of its own does not go first: the row would be forgotten, and its bounds with it.
    if (client.owner !== row) this.leave(client)
    row.adopt(identity.rights, this.#nowMs())
    row.clients.add(client)
    this.#absent.delete(row)
    client.owner = row
    client.identity = identity
    return true
  }

  leave(client: Client): void {
    const row = client.owner
    if (row === undefined || !row.clients.delete(client) || row.clients.size > 0 || row === this.local) return
    if (row.isRested(this.#nowMs())) return void this.#rows.delete(row.key)
    this.#absent.add(row)
    for (const oldest of this.#absent) {
      if (this.#absent.size <= FIXED.maxAbsentPrincipals && !oldest.isRested(this.#nowMs())) break
      this.#absent.delete(oldest)
      this.#rows.delete(oldest.key)
    }
  }

  #rowOf(identity: Identity): PrincipalRow {
    const known = this.#rows.get(keyOf(identity))
    if (known !== undefined) return known
    const row = new PrincipalRow(identity, this.#nowMs())
    this.#rows.set(row.key, row)
    return row
  }
}

function keyOf({ principal, apart }: Identity): string {
  return apart === undefined ? principal : `${principal} ${apart}`
}
