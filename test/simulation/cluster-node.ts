/**
 * One node of a simulated cluster: a kernel with its clients and workers, and what `src/cluster` makes of the others. It drives
 * both as the shell does (`src/cli/daemon/cluster-room.ts`), with a clock of its own.
 */
import { type Place, placesOf, withPlaces } from '../../src/cli/daemon/imports.ts'
import { identityFromNode } from '../../src/cli/daemon/open-doors.ts'
import { StreamClient } from '../../src/cli/daemon/stream-client.ts'
import { StreamWorker } from '../../src/cli/daemon/stream-worker.ts'
import { Cluster } from '../../src/cluster/cluster.ts'
import { CLUSTER } from '../../src/cluster/limits.ts'
import { placeName } from '../../src/cluster/names.ts'
import { openingFor, readOpening, writeOpening } from '../../src/cluster/opening.ts'
import type { Stream, StreamOwner } from '../../src/cluster/stream.ts'
import { DIALECTS } from '../../src/dialects/index.ts'
import { Bus } from '../../src/kernel/bus.ts'
import type { Action, BusEvent, WorkerGeneration, Write } from '../../src/kernel/events.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import type { BusSpec, ClientId, PoolId, PoolSpec, WorkerId } from '../../src/kernel/vocabulary.ts'
import type { Chance } from './chance.ts'
import { demand } from './violation.ts'

export const LOST_AFTER_MS = 2_000
/** The end of a stream takes an offset of its own. */
const ENDS_BYTES = 1

export interface NodeHost {
  readonly chance: Chance
  publish(from: SimNode, subject: string, message: Buffer): boolean
}

/** A client of this node, and what it is owed. */
export interface SimGuest {
  readonly id: ClientId
  /** Requests without an answer, by id, and the pool they were for. */
  readonly owed: Map<number, string>
  /** Of each worker that has answered, the newest request it answered. */
  readonly newest: Map<string, number>
  isGone: boolean
  isSlow: boolean
  /** What it has not read. */
  unread: Buffer[]
}

interface OwnWorker extends WorkerGeneration {
  readonly pool: PoolId
  readonly name: string
  isDead: boolean
  held: string
  answers: string[]
}

export interface NodeSetting {
  readonly nowMs: number
  readonly underWayBytes: number | undefined
}

let made = 0

export class SimNode {
  readonly name: string
  readonly cluster: Cluster
  readonly bus: Bus
  readonly guests: SimGuest[] = []
  nowMs: number
  /** The most that it lets one other have under way to it. */
  readonly mostShareBytes: number
  isConnected = false
  /** It does not run: its clock stands still. */
  isFrozen = false
  answered = 0
  readonly reasons = new Map<string, number>()
  readonly #host: NodeHost
  readonly #own: readonly PoolSpec[]
  #places: ReadonlyMap<PoolId, Place> = new Map()
  readonly #workers = new Map<WorkerId, OwnWorker | StreamWorker>()
  readonly #streams = new Map<ClientId, StreamClient>()
  readonly #later: (() => void)[] = []
  /** Both ends of streams that are here. */
  readonly #ends = new Set<Stream>()
  #nextClient = 1
  #nextRequest = 1
  #isChanged = false
  #isBusy = false

  constructor(name: string, pools: readonly PoolId[], setting: NodeSetting, host: NodeHost) {
    const { nowMs, underWayBytes } = setting
    this.name = name
    this.nowMs = nowMs
    this.mostShareBytes = Math.max(CLUSTER.leastShareBytes, underWayBytes ?? CLUSTER.underWayBytes)
    this.#host = host
    this.#own = pools.map((id) => poolSpec(id))
    this.bus = new Bus(this.#spec(), DIALECTS, () => host.chance.next())
    this.cluster = new Cluster(
      {
        cluster: 'sim',
        node: name,
        version: '1',
        run: ++made,
        lostAfterMs: LOST_AFTER_MS,
        chance: () => host.chance.next(),
        ...(underWayBytes === undefined ? {} : { underWayBytes }),
      },
      {
        publish: (subject, message) => this.isConnected && host.publish(this, subject, message),
        flushSoon: () => {},
        maxGuests: DEFAULT_LIMITS.maxClients,
        opened: (node, stream, opening) => this.#opened(node, stream, opening),
        changed: () => {
          this.#isChanged = true
        },
        log: () => {},
      },
    )
    this.#perform(this.bus.start(nowMs))
    this.settle()
  }

  // ---- what happens to it ----

  connect(): void {
    this.isConnected = true
    this.cluster.connected(64 * 1024, this.nowMs)
    this.settle()
  }

  disconnect(): void {
    this.isConnected = false
    this.cluster.disconnected(this.nowMs)
  }

  receive(subject: string, message: Buffer): void {
    this.cluster.receive(subject, message, this.nowMs)
    this.settle()
  }

  tick(ms: number): void {
    this.nowMs += ms
    const pools = this.#own.map(({ id, protocol, era }) => ({
      id,
      protocol,
      era,
      ...this.bus.loadOf(id),
      streams: 0,
      maxLineBytes: DEFAULT_LIMITS.maxInputBufferBytes,
      isPortable: false,
    }))
    this.cluster.describe({ pools, agents: [] }, false)
    this.cluster.tick(this.nowMs)
    this.apply({ type: 'tick' })
  }

  addGuest(): void {
    const id = this.#nextClient++ as ClientId
    const guest: SimGuest = { id, owed: new Map(), newest: new Map(), isGone: false, isSlow: false, unread: [] }
    this.guests.push(guest)
    this.apply({ type: 'client-opened', client: id, door: 'unix', isLocal: true })
  }

  ask(guest: SimGuest, pool: string, bytes: number): void {
    const id = this.#nextRequest++
    guest.owed.set(id, pool)
    const line = `{"jsonrpc":"2.0","id":${id},"method":"x","pool":"${pool}","params":"${'p'.repeat(bytes)}"}\n`
    this.apply({ type: 'client-received', client: guest.id, bytes: Buffer.from(line) })
  }

  leave(guest: SimGuest): void {
    guest.isGone = true
    guest.owed.clear()
    this.guests.splice(this.guests.indexOf(guest), 1)
    this.apply({ type: 'client-closed', client: guest.id })
  }

  /** A slow client reads. */
  read(guest: SimGuest): void {
    guest.isSlow = false
    const unread = guest.unread.splice(0)
    for (const bytes of unread) this.#hear(guest, bytes)
    this.apply({ type: 'client-wrote', client: guest.id, pendingBytes: 0 })
  }

  /** A worker of its own says what it owes, or dies. */
  work(isDeath: boolean): void {
    const own = [...this.#workers.values()].filter(
      (worker): worker is OwnWorker => 'answers' in worker && !worker.isDead,
    )
    if (own.length === 0) return
    const worker = this.#host.chance.pick(own)
    const { worker: id, generation } = worker
    if (isDeath) {
      worker.isDead = true
      this.apply({ type: 'worker-silent', worker: id, generation, pipe: 'stdout' })
      return this.apply({ type: 'worker-ended', worker: id, generation, isClean: false, how: { exitCode: 1 } })
    }
    const said = worker.answers.splice(0, 1 + this.#host.chance.int(20)).join('')
    if (said !== '') this.apply({ type: 'worker-received', worker: id, generation, bytes: Buffer.from(said) })
  }

  /** Clients from other nodes that its kernel has. */
  get strangers(): number {
    return this.bus.roll().client_list.filter(({ door }) => door === 'cluster').length
  }

  /** Workers that are streams, and live. */
  get streamsOut(): number {
    return this.bus.snapshot().workers.filter(({ pool, state }) => pool.includes('@') && state === 'ready').length
  }

  // ---- the shell ----

  apply(event: BusEvent): void {
    this.#perform(this.bus.apply(event, this.nowMs))
    if (!this.#isBusy) this.settle()
  }

  settle(): void {
    this.#isBusy = true
    for (let isDone = false; !isDone; ) {
      isDone = true
      for (const write of this.bus.takeWrites()) {
        isDone = false
        const pendingBytes = this.#write(write)
        this.#perform(this.bus.wrote(write, pendingBytes, this.nowMs))
      }
      for (const then of this.#later.splice(0)) {
        isDone = false
        then()
      }
      if (this.#isChanged && isDone) {
        isDone = false
        this.#isChanged = false
        this.#places = placesOf(this.cluster.nodes(this.nowMs), ['*'])
        this.#perform(this.bus.apply({ type: 'reload', spec: this.#spec() }, this.nowMs))
      }
    }
    this.#isBusy = false
    this.cluster.flush(this.nowMs)
    this.#measure()
  }

  #spec(): BusSpec {
    const pools = withPlaces(this.#own, this.#places, DEFAULT_LIMITS, false)
    return { pools, defaultPool: undefined, limits: DEFAULT_LIMITS, node: this.name }
  }

  #write(write: Write): number {
    const bytes = Buffer.concat(write.buffers)
    if (write.kind === 'client') {
      const stream = this.#streams.get(write.id)
      if (stream !== undefined) return stream.write(write.buffers)
      const guest = this.guests.find(({ id }) => id === write.id)
      if (guest === undefined) return 0
      if (guest.isSlow) {
        guest.unread.push(bytes)
        return bytes.length
      }
      this.#hear(guest, bytes)
      return 0
    }
    const worker = this.#workers.get(write.id)
    if (worker === undefined) return 0
    if (!('answers' in worker)) return worker.write(write.buffers)
    const lines = `${worker.held}${bytes.toString()}`.split('\n')
    worker.held = lines.pop()!
    for (const line of lines) {
      const { id } = JSON.parse(line) as { id: number | string }
      worker.answers.push(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"by":"${worker.name}"}}\n`)
    }
    return 0
  }

  /** One answer for each request, at the client that asked, and in order from one worker. */
  #hear(guest: SimGuest, bytes: Buffer): void {
    for (const line of bytes.toString().trimEnd().split('\n')) {
      const answer = JSON.parse(line) as { id: number; result?: { by: string }; error?: { data: { reason: string } } }
      const pool = guest.owed.get(answer.id)
      demand(pool !== undefined, 'answered once', () => `client ${guest.id} of ${this.name} was not owed ${line}`)
      guest.owed.delete(answer.id)
      this.answered++
      if (answer.error !== undefined) {
        const { reason } = answer.error.data
        this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1)
        continue
      }
      const by = answer.result!.by
      const [name, node] = pool.split('@') as [string, string?]
      demand(by.startsWith(name), 'nobody else sees it', () => `${line} came from another pool than ${pool}`)
      demand(
        node === undefined || by.includes(node),
        'nobody else sees it',
        () => `${line} came from elsewhere than ${pool}`,
      )
      // Two ways to one worker are two.
      const way = `${by} by ${pool}`
      demand((guest.newest.get(way) ?? 0) < answer.id, 'order kept', () => `${line} overtook another, ${way}`)
      guest.newest.set(way, answer.id)
    }
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions) this.#do(action)
  }

  #do(action: Action): void {
    if (action.do === 'open-worker') this.#open(action)
    else if (action.do === 'close-worker') this.#close(action.worker, action.how)
    else if (action.do === 'close-client') {
      this.#streams.get(action.client)?.close(action.how)
      this.#streams.delete(action.client)
    } else if (action.do === 'locate') {
      const node = this.cluster.choose(action.pool)
      const place = node === undefined ? action.pool : placeName(action.pool, node)
      this.#perform(this.bus.apply({ type: 'located', client: action.client, pool: action.pool, place }, this.nowMs))
    } else if (action.do === 'pause-client') this.#streams.get(action.client)?.pause()
    else if (action.do === 'resume-client') this.#streams.get(action.client)?.resume()
    else if (action.do === 'pause-worker' || action.do === 'resume-worker') {
      const worker = this.#workers.get(action.worker)
      if (worker instanceof StreamWorker) action.do === 'pause-worker' ? worker.pause() : worker.resume()
    }
  }

  #open({ worker, generation, pool }: Extract<Action, { do: 'open-worker' }>): void {
    const of = { worker, generation }
    const place = this.#places.get(pool)
    if (place !== undefined) {
      const { node } = place
      const newcomer = this.cluster.expect(node, place.pool, this.nowMs)
      const open = (owner: StreamOwner) => {
        const stream = this.#openStream(worker, place, owner)
        if (typeof stream === 'object') newcomer.stream = stream
        return stream
      }
      const host = {
        tell: (event: BusEvent) => this.apply(event),
        open,
        later: (then: () => void) => void this.#later.push(then),
      }
      return void this.#workers.set(worker, new StreamWorker(of, node, host))
    }
    const name = `${pool} of ${this.name} ${worker}.${generation}`
    this.#workers.set(worker, { ...of, pool, name, isDead: false, held: '', answers: [] })
    this.#later.push(() => this.apply({ type: 'worker-opened', ...of, facts: {} }))
  }

  #openStream(worker: WorkerId, { pool, node }: Place, owner: StreamOwner): Stream | string | undefined {
    const guest = this.bus.guestOf(worker)
    if (guest === undefined) return 'its client has gone'
    const opening = writeOpening(openingFor(pool, guest, { node: this.name, local: undefined, busId: this.name }))!
    const stream = this.cluster.open(node, opening, this.nowMs)
    if (stream === undefined) return undefined
    stream.owner = owner
    this.#ends.add(stream)
    return stream
  }

  /** Of a stream no more is kept than its window, on either side. */
  #measure(): void {
    for (const stream of this.#ends) {
      const { out, in: into } = stream
      const kept = Math.max(out.sent - out.acked, into.received - into.taken)
      demand(kept <= CLUSTER.windowBytes + ENDS_BYTES, 'bounded', () => `${this.name} keeps ${kept} bytes of a stream`)
      if (stream.owner === undefined) this.#ends.delete(stream)
    }
  }

  #close(id: WorkerId, how: 'end' | 'kill' | 'clear'): void {
    const worker = this.#workers.get(id)
    if (worker === undefined) return
    if (worker instanceof StreamWorker) void worker.stop(how)
    else if (!worker.isDead) {
      worker.isDead = true
      const { worker: number, generation } = worker
      this.#later.push(() => {
        this.apply({ type: 'worker-silent', worker: number, generation, pipe: 'stdout' })
        this.apply({ type: 'worker-ended', worker: number, generation, isClean: true, how: { exitCode: 0 } })
      })
    }
    if (how === 'clear') this.#workers.delete(id)
  }

  #opened(node: string, stream: Stream, bytes: Buffer): void {
    const opening = readOpening(bytes)!
    if (!this.#own.some(({ id }) => id === opening.pool))
      return stream.leave({ reason: 'refused', why: 'no such pool' }, true)
    const id = this.#nextClient++ as ClientId
    const host = {
      tell: (event: BusEvent) => this.apply(event),
      endingOf: () => ({ reason: 'closed' as const }),
      gone: () => {},
    }
    const client = new StreamClient(id, stream, host)
    this.#ends.add(stream)
    this.#streams.set(id, client)
    const identity = identityFromNode(opening, node)
    this.apply({ type: 'client-opened', client: id, door: 'cluster', pool: opening.pool, identity })
    client.open()
  }
}

function poolSpec(id: PoolId): PoolSpec {
  return {
    id,
    instances: 1,
    maxInstances: 2,
    sharing: 'shared',
    protocol: 'plain',
    era: 'auto',
    restart: 'always',
    startTimeoutMs: 60_000,
    hangTimeoutMs: 0,
    limits: { ...DEFAULT_LIMITS, maxRestarts: 1_000 },
    trace: false,
    revision: id,
  }
}
