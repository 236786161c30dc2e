/**
 * A kernel, an aggregate and its members, all of them in trouble (contract 13): members die, fall silent, lie, change and ask;
 * clients of both eras come, cancel, go and do not read; members are taken out and put back. Whatever happens, every request is
 * answered once, at the client that asked, by the member that was meant; nothing is sent twice; and nobody speaks for a client
 * that has gone.
 */
import { Aggregate } from '../../src/aggregate/aggregate.ts'
import type { AggregatePort } from '../../src/aggregate/port.ts'
import type { AggregateSpec } from '../../src/aggregate/spec.ts'
import { DelegateClient } from '../../src/cli/daemon/delegate-client.ts'
import { DIALECTS } from '../../src/dialects/index.ts'
import { Bus } from '../../src/kernel/bus.ts'
import type { Action, BusEvent, Write } from '../../src/kernel/events.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import type { ClientId, PoolId, PoolSpec, Sharing, WorkerId } from '../../src/kernel/vocabulary.ts'
import { SimMember, type SimOffer, TOOLS } from './aggregate-member.ts'
import { LENT, SimSeat } from './aggregate-seat.ts'
import { Chance } from './chance.ts'
import { demand } from './violation.ts'

const ALL = 'all' as PoolId
const MOST_SEATS = 6
const MOST_OWED = 30
const LIST_WAIT_MS = 500
const HEALING_MS = 120_000
const STEP_MS = 200

const MEMBERS: readonly (readonly [name: string, sharing: Sharing, isModern: boolean])[] = [
  ['common', 'shared', false],
  ['own', 'isolated', false],
  [LENT, 'lease', false],
  ['late', 'shared', true],
]

interface Alarm {
  readonly atMs: number
  readonly run: () => void
}

export interface AggregateOutcome {
  readonly answered: number
  readonly byMembers: number
  readonly asked: number
  readonly reasons: ReadonlyMap<string, number>
}

export class AggregateWorld {
  readonly chance: Chance
  readonly #offers: readonly SimOffer[]
  readonly #bus: Bus
  readonly #aggregate: Aggregate
  readonly #workers = new Map<WorkerId, SimMember>()
  readonly #seats = new Map<ClientId, SimSeat>()
  /** Who speaks for whom. */
  readonly #delegates = new Map<ClientId, { readonly delegate: DelegateClient; readonly client: number | undefined }>()
  readonly #seen = new Set<string>()
  readonly #later: (() => void)[] = []
  #alarms: Alarm[] = []
  #nextClient = 1
  #nowMs = 1_000
  #isBusy = false
  readonly #totals = { answered: 0, byMembers: 0, asked: 0, reasons: new Map<string, number>() }

  constructor(seed: number) {
    this.chance = new Chance(seed)
    this.#offers = MEMBERS.map(([pool, , isModern]) => ({ pool: pool as PoolId, isModern, tools: [...TOOLS] }))
    const pools = [...MEMBERS.map(([name, sharing, isModern]) => poolSpec(name, sharing, isModern)), aggregateSpec()]
    const spec = { pools, defaultPool: ALL, limits: DEFAULT_LIMITS }
    this.#bus = new Bus(spec, DIALECTS, () => this.chance.next())
    this.#perform(this.#bus.start(this.#nowMs))
    this.#aggregate = new Aggregate(this.#port(new Map(pools.map((pool) => [pool.id, pool]))), this.#membership())
    this.#settle()
  }

  async run(events: number): Promise<AggregateOutcome> {
    for (let n = 0; n < events; n++) {
      this.#step()
      await promisesKept()
      this.#settle()
      this.#checkDelegates()
    }
    await this.#heal()
    for (const seat of this.#seats.values()) this.#count(seat)
    return this.#totals
  }

  #step(): void {
    const { chance } = this
    const roll = chance.next()
    if (roll < 0.35) this.#talk()
    else if (roll < 0.7) this.#work()
    else if (roll < 0.93) this.#pass(chance.between(1, STEP_MS))
    else if (roll < 0.99) this.#trouble()
    else this.#aggregate.adopt(this.#membership())
  }

  // ---- clients ----

  #talk(): void {
    const { chance } = this
    const seats = [...this.#seats.values()]
    if (seats.length === 0 || (seats.length < MOST_SEATS && chance.is(0.06))) return this.#come()
    const seat = chance.pick(seats)
    if (chance.is(0.02)) return this.#go(seat)
    if (seat.isSlow && chance.is(0.3)) return this.#read(seat)
    if (chance.is(0.02)) seat.isSlow = true
    if (chance.is(0.3)) for (const line of seat.answers(chance)) this.#send(seat, line)
    else if (chance.is(0.1)) this.#send(seat, seat.cancel(chance))
    else if (seat.owed.size < MOST_OWED) this.#send(seat, seat.ask(chance, this.#offers))
  }

  #come(): void {
    const id = this.#nextClient++ as ClientId
    const seat = new SimSeat(id, this.chance.is(0.4), this.chance.is(0.7))
    this.#seats.set(id, seat)
    this.#apply({ type: 'client-opened', client: id, door: 'unix', isLocal: true })
    this.#send(seat, seat.greeting())
  }

  #go(seat: SimSeat): void {
    this.#seats.delete(seat.id)
    this.#count(seat)
    this.#apply({ type: 'client-closed', client: seat.id })
  }

  #read(seat: SimSeat): void {
    seat.isSlow = false
    for (const bytes of seat.unread.splice(0)) seat.hear(bytes)
    this.#apply({ type: 'client-wrote', client: seat.id, pendingBytes: 0 })
  }

  #send({ id }: SimSeat, line: string | undefined): void {
    if (line !== undefined) this.#apply({ type: 'client-received', client: id, bytes: Buffer.from(line) })
  }

  #count({ answered, byMembers, asked, reasons }: SimSeat): void {
    this.#totals.answered += answered
    this.#totals.byMembers += byMembers
    this.#totals.asked += asked
    for (const [reason, count] of reasons)
      this.#totals.reasons.set(reason, (this.#totals.reasons.get(reason) ?? 0) + count)
  }

  // ---- members ----

  get #living(): SimMember[] {
    return [...this.#workers.values()].filter(({ isDead }) => !isDead)
  }

  #work(): void {
    const able = this.#living.filter(({ isSilent }) => !isSilent)
    if (able.length > 0) this.#speak(this.chance.pick(able))
  }

  #speak(member: SimMember): void {
    const bytes = member.say()
    if (bytes.length > 0) this.#apply({ type: 'worker-received', ...member.of, bytes })
  }

  #trouble(): void {
    const { chance } = this
    if (this.#living.length === 0) return
    const member = chance.pick(this.#living)
    const roll = chance.next()
    if (roll < 0.25) this.#end(member, false)
    else if (roll < 0.5) member.isSilent = !member.isSilent
    else if (roll < 0.75) member.relent()
    else member.changeLists()
  }

  #end(member: SimMember, isClean: boolean): void {
    if (member.isDead) return
    member.isDead = true
    this.#apply({ type: 'worker-silent', ...member.of, pipe: 'stdout' })
    this.#apply({ type: 'worker-ended', ...member.of, isClean, how: { exitCode: isClean ? 0 : 1 } })
  }

  // ---- the aggregate ----

  /** Some of the members, in the order of the file. */
  #membership(): AggregateSpec {
    const members = MEMBERS.filter(() => this.chance.is(0.85)).map(([pool]) => pool)
    return {
      id: ALL,
      members: (members.length === 0 ? ['common'] : members).map((pool) => ({
        pool,
        allow: ['*'],
        deny: [],
        rename: new Map(),
      })),
      mode: 'all',
      pin: [],
      maxNameLength: 48,
      listWaitMs: LIST_WAIT_MS,
    }
  }

  #port(pools: ReadonlyMap<string, PoolSpec>): AggregatePort {
    return {
      open: (pool, client, received) => this.#openDelegate(pool as PoolId, client, received),
      reply: (client, bytes, options) =>
        this.#apply({
          type: 'member-reply',
          client: client as ClientId,
          bytes,
          row: options?.row,
          via: options?.via as ClientId | undefined,
          outcome: options?.outcome,
          hasBatches: options?.hasBatches,
        }),
      waive: (client, row) => this.#apply({ type: 'member-waived', client: client as ClientId, row }),
      rightsOf: () => undefined,
      factsOf: (pool) => pools.get(pool),
      workersOf: (pool) => this.#bus.workersOf(pool as PoolId),
      nowMs: () => this.#nowMs,
      after: (delayMs, run) => this.#alarm(delayMs, run),
      log: () => {},
      count: () => {},
      secret: 'secret',
    }
  }

  #alarm(delayMs: number, run: () => void): () => void {
    const alarm = { atMs: this.#nowMs + delayMs, run }
    this.#alarms.push(alarm)
    return () => {
      this.#alarms = this.#alarms.filter((each) => each !== alarm)
    }
  }

  #openDelegate(pool: PoolId, client: number | undefined, received: (line: Buffer) => void): DelegateClient {
    const id = this.#nextClient++ as ClientId
    const delegate = new DelegateClient(id, received, (event) => this.#apply(event))
    this.#delegates.set(id, { delegate, client })
    const whose = client === undefined ? {} : { behalfOf: client as ClientId }
    this.#apply({ type: 'client-opened', client: id, door: 'internal', pool, isDelegate: true, ...whose })
    return delegate
  }

  /** Nobody speaks for a client that has gone. */
  #checkDelegates(): void {
    for (const [id, { client }] of this.#delegates)
      demand(
        client === undefined || this.#seats.has(client as ClientId),
        'nothing left',
        () => `delegate ${id} speaks for client ${client}, which has gone`,
      )
  }

  // ---- the shell ----

  #apply(event: BusEvent): void {
    if (event.type === 'client-closed') this.#delegates.delete(event.client)
    this.#perform(this.#bus.apply(event, this.#nowMs))
    if (!this.#isBusy) this.#settle()
  }

  #settle(): void {
    this.#isBusy = true
    for (let isDone = false; !isDone; ) {
      isDone = true
      for (const write of this.#bus.takeWrites()) {
        isDone = false
        const pendingBytes = this.#write(write)
        this.#perform(this.#bus.wrote(write, pendingBytes, this.#nowMs))
      }
      for (const then of this.#later.splice(0)) {
        isDone = false
        then()
      }
    }
    this.#isBusy = false
  }

  #write(write: Write): number {
    const bytes = Buffer.concat(write.buffers)
    if (write.kind === 'worker') {
      const member = this.#workers.get(write.id)
      if (member !== undefined && !member.isDead) member.read(bytes)
      return 0
    }
    const seat = this.#seats.get(write.id)
    if (seat === undefined) return 0
    if (seat.isSlow) {
      seat.unread.push(bytes)
      return bytes.length
    }
    seat.hear(bytes)
    return 0
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions) this.#do(action)
  }

  #do(action: Action): void {
    if (action.do === 'open-worker') this.#open(action)
    else if (action.do === 'close-worker') this.#close(action.worker)
    else if (action.do === 'said') this.#delegates.get(action.client)?.delegate.hear(action.bytes, action.source)
    else if (action.do === 'aggregate') this.#take(action)
    else if (action.do === 'aggregate-waived') this.#aggregate.waived(action.client, action.row)
    else if (action.do === 'caller-gone' && action.from.kind === 'client') this.#aggregate.gone(action.from.client)
    else if (action.do === 'close-client') {
      this.#delegates.get(action.client)?.delegate.close()
      this.#delegates.delete(action.client)
      const seat = this.#seats.get(action.client)
      demand(seat === undefined, 'answered once', () => `client ${action.client} was closed by the bus`)
    }
  }

  #take({ client, pool, bytes, row }: Extract<Action, { do: 'aggregate' }>): void {
    if (pool !== undefined) this.#aggregate.take(client, bytes, row)
    else this.#aggregate.takeAnswer(client, bytes)
  }

  #open({ worker, generation, pool }: Extract<Action, { do: 'open-worker' }>): void {
    const of = { worker, generation }
    const offer = this.#offers.find((each) => each.pool === pool)!
    this.#workers.set(worker, new SimMember(of, offer, this.chance, this.#seen))
    this.#later.push(() => this.#apply({ type: 'worker-opened', ...of, facts: {} }))
  }

  #close(id: WorkerId): void {
    const member = this.#workers.get(id)
    if (member !== undefined) this.#later.push(() => this.#end(member, true))
  }

  #pass(ms: number): void {
    this.#nowMs += ms
    const due = this.#alarms.filter(({ atMs }) => atMs <= this.#nowMs).sort((a, b) => a.atMs - b.atMs)
    this.#alarms = this.#alarms.filter((alarm) => !due.includes(alarm))
    for (const { run } of due) run()
    this.#apply({ type: 'tick' })
  }

  /** All is well from now on: nothing is owed in the end. */
  async #heal(): Promise<void> {
    for (let ms = 0; ms < HEALING_MS; ms += STEP_MS) {
      for (const seat of this.#seats.values()) {
        if (seat.isSlow) this.#read(seat)
        this.#send(seat, seat.endListens())
        for (const line of seat.answerAll()) this.#send(seat, line)
      }
      for (const member of this.#living) {
        member.isSilent = false
        member.relent()
        this.#speak(member)
      }
      this.#pass(STEP_MS)
      await promisesKept()
      this.#settle()
    }
    const owed = [...this.#seats.values()].flatMap(({ id, owed: open }) => [...open.values()].map((each) => [id, each]))
    demand(owed.length === 0, 'answered once', () => `never answered: ${JSON.stringify(owed.slice(0, 5))}`)
    const { missing } = this.#aggregate
    demand(missing.length === 0, 'goes on', () => `never listed again: ${missing}`)
    this.#checkDelegates()
    // The bus itself listens to members of the newer era for as long as they are there.
    const own = [...this.#delegates.values()].filter(({ client }) => client === undefined).length
    const { outstanding } = this.#bus.snapshot()
    demand(outstanding <= own, 'tables tidy', () => `${outstanding} requests are open, ${own} may be`)
  }
}

/** What was promised by then is done: the aggregate asks its members by promises. */
function promisesKept(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function poolSpec(name: string, sharing: Sharing, isModern: boolean): PoolSpec {
  return {
    id: name as PoolId,
    instances: sharing === 'isolated' ? 0 : 2,
    maxInstances: sharing === 'isolated' ? 100 : 2,
    sharing,
    protocol: 'mcp',
    era: isModern ? 'modern' : 'auto',
    restart: 'always',
    startTimeoutMs: 60_000,
    hangTimeoutMs: 0,
    limits: { ...DEFAULT_LIMITS, maxRestarts: 100_000 },
    trace: false,
    revision: name,
  }
}

function aggregateSpec(): PoolSpec {
  return { ...poolSpec(ALL, 'shared', false), instances: 0, maxInstances: 0, restart: 'never', isAggregate: true }
}
