/**
 * This bus as one node of many: joins `src/cluster` to the kernel and to NATS (contract 14).
 *
 * Streams of this node's clients are workers of the kernel, streams of others are its clients; what can be had elsewhere
 * becomes pools. It decides nothing that a state machine of `src/cluster` or the kernel decides.
 */

import type { AnnouncedPool } from '../../cluster/announcement.ts'
import { Broker, showServers } from '../../cluster/broker.ts'
import { Cluster, type ClusterPort, type OwnWord } from '../../cluster/cluster.ts'
import { Directory, type Found } from '../../cluster/directory.ts'
import { CLUSTER } from '../../cluster/limits.ts'
import { agentIn, NODE_DESK, placeName } from '../../cluster/names.ts'
import { type Opening, openingFor, readOpening, type Traveller, writeOpening } from '../../cluster/opening.ts'
import type { Stream, StreamOwner } from '../../cluster/stream.ts'
import type { BusConfig, ClusterConfig } from '../../config/bus-config.ts'
import type { ClusterFigures, ClusterStatus } from '../../console/cluster-view.ts'
import type { Guest } from '../../kernel/bus.ts'
import type { Action } from '../../kernel/events.ts'
import { type Identity, matchesAny } from '../../kernel/rights.ts'
import { viaFault } from '../../kernel/via.ts'
import type { ClientId, PoolId, PoolSpec, Refusal, SessionId, WorkerId } from '../../kernel/vocabulary.ts'
import type { TraceDocument } from '../../trace/document.ts'
import type { NodeTrace } from '../../trace/merge-traces.ts'
import { brokerOptionsOf } from '../cluster-files.ts'
import { VERSION } from '../version.ts'
import { WorldFailure } from '../world-failure.ts'
import type { Daemon } from './daemon.ts'
import type { JoinWorker, Spawn } from './ends.ts'
import { Errand, type ErrandWay } from './errand.ts'
import { farAgents, type Place, placesOf, withPlaces } from './imports.ts'
import type { Log } from './log.ts'
import { NodeDesk, type TellTrace, TRACE_QUESTION } from './node-desk.ts'
import type { Reception } from './open-doors.ts'
import { type Asked, gatherSessions, type NodePools } from './session-errands.ts'
import { StreamClient } from './stream-client.ts'
import { StreamWorker } from './stream-worker.ts'

export interface ClusterRoomOptions {
  readonly daemon: Daemon
  readonly log: Log
  readonly busId: string
  readonly reception: () => Reception
  readonly tellTrace: TellTrace
  /** What can be had elsewhere has changed: the kernel is to be told. */
  readonly changed: () => void
}

const RUNS = 2 ** 32
/** Who asks in the name of this node: nobody's rights go along. */
const NODE_ITSELF: Traveller = { principal: 'node', name: 'node', rights: { role: 'user', pools: [] }, vias: [] }

export class ClusterRoom implements ClusterPort {
  readonly #options: ClusterRoomOptions
  readonly #cluster: Cluster
  readonly #broker: Broker
  readonly #directory: Directory
  #isDirectoryAsked = false
  #config: ClusterConfig
  /** Of this bus's own file. */
  #own: BusConfig
  #places: ReadonlyMap<PoolId, Place> = new Map()
  /** Streams of others, by the pool that they use. */
  readonly #guests = new Map<PoolId, number>()
  #timer: NodeJS.Timeout | undefined
  #receipts: NodeJS.Timeout | undefined
  #isFlushDue = false
  readonly #flush = (): void => {
    this.#isFlushDue = false
    this.#cluster.flush(performance.now())
    this.#armReceipts()
  }
  #isJoined = false
  #isChangeDue = false
  /** The kernel is told no sooner. */
  #tellAgainMs = 0
  #desks = 0
  #shape = ''

  /** Files that cannot be used are a mistake of the user's: fails with UnusableFile. */
  constructor(own: BusConfig, options: ClusterRoomOptions) {
    const config = own.cluster!
    this.#own = own
    this.#config = config
    this.#options = options
    const { name, node, lostAfterMs, jsDomain } = config
    this.#directory = new Directory({ cluster: name, node, ...(jsDomain === undefined ? {} : { jsDomain }) })
    const run = 1 + Math.floor(Math.random() * (RUNS - 1))
    this.#cluster = new Cluster({ cluster: name, node, version: VERSION, run, lostAfterMs, chance: Math.random }, this)
    this.#broker = new Broker(brokerOptionsOf(config), {
      connected: (maxPayloadBytes) => this.#connected(maxPayloadBytes),
      disconnected: () => this.#disconnected(),
      received: (subject, message) => this.#cluster.receive(subject, message, performance.now()),
      trouble: (sentence) => options.log.write('warn', sentence),
    })
  }

  // ---- from start to end ----

  /** Looks whether the name is free; without NATS, later (contract 14.1). */
  async prepare(): Promise<void> {
    const { servers, node, name } = this.#config
    try {
      await this.#broker.connect()
    } catch (error) {
      const nats = showServers(servers)
      const why = error instanceof Error ? error.message : String(error)
      this.#options.log.write('warn', `NATS cannot be reached: ${why}; this node joins as soon as it can`, { nats })
      return
    }
    if (!(await this.#broker.isNameTaken())) return void (this.#isJoined = true)
    await this.#broker.close()
    throw new WorldFailure(`a living node of the cluster ${name} is called ${node}: give this one another "node"`)
  }

  /** The workers have been started: from now on it is a node like the others. */
  start(): void {
    this.#look()
    if (this.#isJoined) this.#broker.join()
    else this.#joinLater()
    this.#timer = setInterval(() => this.#look(), CLUSTER.lookEveryMs)
  }

  #joinLater(): void {
    const { node, name } = this.#config
    let wasTold = false
    this.#broker.persist({
      joined: () => void (this.#isJoined = true),
      taken: () => {
        if (!wasTold)
          this.#options.log.write(
            'error',
            `a living node of the cluster ${name} is called ${node}: this one cannot join`,
          )
        wasTold = true
      },
    })
  }

  /** It goes: others choose another node (contract 14.7). */
  leave(): void {
    this.#cluster.leave('leaving', performance.now())
  }

  async close(): Promise<void> {
    const untilMs = performance.now() + CLUSTER.lastWordsMs
    while (this.#broker.isUp && !this.#cluster.isQuiet && performance.now() < untilMs) await pause(10)
    this.#cluster.flush(performance.now())
    this.#cluster.leave('left', performance.now())
    clearInterval(this.#timer)
    clearTimeout(this.#receipts)
    this.#directory.close()
    await this.#broker.close()
  }

  #connected(maxPayloadBytes: number): void {
    this.#options.log.write('info', 'in the cluster', { node: this.#config.node, nats: this.#broker.server })
    this.#cluster.connected(maxPayloadBytes, performance.now())
    this.flushSoon()
    if (!this.#isDirectoryAsked) this.#openDirectory()
  }

  #openDirectory(): void {
    this.#isDirectoryAsked = true
    void this.#directory.open(this.#broker.connection!, {
      opened: () => this.changed(),
      missing: (why) =>
        this.#options.log.write('warn', `there is no directory of sessions, it is not to be had of JetStream: ${why}`),
    })
  }

  #disconnected(): void {
    this.#options.log.write('warn', 'the connection to NATS is broken')
    this.#cluster.disconnected(performance.now())
  }

  #look(): void {
    const own = this.#describe()
    const shape = JSON.stringify([own.pools.map(({ id, ready }) => [id, ready > 0]), own.agents])
    this.#cluster.describe(own, shape !== this.#shape)
    this.#shape = shape
    this.#cluster.tick(performance.now())
    this.#armReceipts()
  }

  // ---- what this node has ----

  adopt(own: BusConfig): void {
    this.#own = own
    this.#config = own.cluster!
    this.#places = placesOf(this.#cluster.nodes(performance.now()), this.#config.imports)
  }

  #describe(): OwnWord {
    const { exports } = this.#config
    const pools = this.#own.bus.pools.filter(({ id, isAioOnly }) => isAioOnly !== true && matchesAny(exports, id))
    const agents = this.#own.agents.map(({ name }) => name).filter((name) => matchesAny(exports, name))
    return { pools: pools.map((pool) => this.#announced(pool)), agents }
  }

  #announced({ id, protocol, era, limits, isPortable }: PoolSpec): AnnouncedPool {
    const load = this.#options.daemon.loadOf(id)
    const streams = this.#guests.get(id) ?? 0
    return {
      id,
      protocol,
      era,
      ...load,
      streams,
      maxLineBytes: limits.maxInputBufferBytes,
      isPortable: isPortable === true,
    }
  }

  // ---- what others have ----

  /** The configuration with what can be had elsewhere. */
  withImports(config: BusConfig): BusConfig {
    const { bus, agents } = config
    const pools = withPlaces(bus.pools, this.#places, bus.limits, this.#directory.isOpen)
    const far = farAgents(
      this.#places,
      agents.map(({ name }) => name),
    )
    const hasDirectory = this.#directory.isOpen
    return { ...config, bus: { ...bus, pools, hasDirectory, ...(far.size === 0 ? {} : { farAgents: far }) } }
  }

  /** A worker of a pool that is elsewhere; undefined: it is not. */
  launch({ pool }: Spawn): JoinWorker | undefined {
    const place = this.#places.get(pool)
    if (place === undefined) return undefined
    const { node } = place
    const newcomer = this.#cluster.expect(node, place.pool, performance.now())
    return {
      join: (of, tell) => {
        const open = (owner: StreamOwner): Stream | string | undefined => {
          const stream = this.#open(of.worker, place, owner)
          if (typeof stream === 'object') newcomer.stream = stream
          return stream
        }
        return new StreamWorker(of, node, { tell, open, later: setImmediate })
      },
    }
  }

  #open(worker: WorkerId, { node, pool }: Place, owner: StreamOwner): Stream | string | undefined {
    const guest = this.#options.daemon.guestOf(worker)
    return guest === undefined ? 'its client has gone' : this.#begin({ node, pool }, guest, owner)
  }

  #begin(
    { node, pool }: Pick<Place, 'node' | 'pool'>,
    guest: Traveller,
    owner: StreamOwner,
  ): Stream | string | undefined {
    const { local } = this.#config
    const home = { node: this.#config.node, local, busId: this.#options.busId }
    const opening = writeOpening(openingFor(pool, guest, home), this.#cluster.maxOpeningBytes)
    if (opening === undefined) return 'the rights of its client are too many to go along'
    const stream = this.#cluster.open(node, opening, performance.now())
    if (stream !== undefined) stream.owner = owner
    return stream
  }

  /** Where somebody goes whose pool is at several places (contract 14.3). */
  locate({ client, pool, session }: Extract<Action, { do: 'locate' }>): void {
    const { daemon } = this.#options
    if (session !== undefined) return void this.#findSession(client, pool, session)
    const node = this.#cluster.choose(pool)
    const place = node === undefined ? pool : placeName(pool, node)
    daemon.apply({ type: 'located', client, pool, place })
  }

  /** Where a session lives that is claimed; no other node is tried (contract 14.6). */
  async #findSession(client: ClientId, pool: PoolId, session: SessionId): Promise<void> {
    const found = await this.#directory.find(pool, session)
    this.#options.daemon.apply({ type: 'located', client, pool, session, ...this.#placeFor(pool, found) })
  }

  #placeFor(pool: PoolId, found: Found): { place: PoolId | undefined } | { refusal: Refusal } {
    if (found === 'unavailable') return { refusal: { reason: 'directory_unavailable' } }
    if (found === 'nowhere') return { place: undefined }
    const { node } = found
    if (node === this.#config.node) return { place: pool }
    const place = this.#places.get(placeName(pool, node))
    if (place !== undefined && place.refusal === undefined) return { place: placeName(pool, node) }
    if (this.#isPortable(pool)) return { place: undefined }
    return { refusal: place?.refusal ?? { reason: 'node_lost', detail: { node } } }
  }

  #isPortable(pool: PoolId): boolean {
    const own = this.#own.bus.pools.find(({ id }) => id === pool)
    if (own !== undefined) return own.isPortable === true
    return [...this.#places.values()].some((place) => place.pool === pool && place.announced.isPortable)
  }

  /** A list of sessions is wanted of all nodes (contract 14.6). */
  gather(asked: Asked): void {
    const { daemon, log } = this.#options
    const { client, row } = asked
    const who = daemon.travellerOf(client)
    if (who === undefined) return
    const host = {
      nodes: () => this.#nodePools(),
      open: (node: string, pool: PoolId, of: Guest, errand: Errand) =>
        node === this.#config.node ? this.#visitHere(pool, of, errand) : this.#visit({ node, pool }, of, errand),
    }
    gatherSessions(asked, who, host).then(
      (told) => daemon.apply({ type: 'gathered', client, row, ...told }),
      (error: unknown) => {
        log.write('error', 'sessions could not be listed', { why: String(error) })
        daemon.apply({ type: 'gathered', client, row, refusal: { reason: 'directory_unavailable' } })
      },
    )
  }

  /** What the other living nodes have of a trace, and who of them was silent (contract 14.10). */
  async tracesOf(traceId: string): Promise<{ told: NodeTrace[]; missing: string[] }> {
    const nodes = this.#cluster.nodes(performance.now()).filter(({ state }) => state === 'ready' || state === 'silent')
    const missing: string[] = []
    const told = await Promise.all(
      nodes.map(async ({ node }) => {
        const errand = new Errand({ waitMs: CLUSTER.traceWaitMs, maxBytes: CLUSTER.maxTraceBytes })
        errand.way = this.#visit({ node, pool: NODE_DESK }, NODE_ITSELF, errand)
        const answer = await errand.ask(TRACE_QUESTION, { trace_id: traceId })
        errand.end()
        if (answer === undefined) missing.push(node)
        return { node, document: (answer?.['result'] ?? undefined) as TraceDocument | undefined }
      }),
    )
    return { told, missing }
  }

  #nodePools(): NodePools[] {
    const own = this.#own.bus.pools.filter(({ isAioOnly }) => isAioOnly !== true).map(({ id }) => id)
    const others = new Map<string, { node: string; pools: PoolId[]; isLost: boolean }>()
    for (const { node, pool, refusal } of this.#places.values()) {
      if (agentIn(pool) !== undefined) continue
      const known = others.get(node)
      if (known === undefined) others.set(node, { node, pools: [pool], isLost: refusal?.reason === 'node_lost' })
      else known.pools.push(pool)
    }
    return [{ node: this.#config.node, pools: own, isLost: false }, ...others.values()]
  }

  #visit({ node, pool }: Pick<Place, 'node' | 'pool'>, who: Traveller, errand: Errand): ErrandWay | undefined {
    const stream = this.#begin({ node, pool }, who, errand)
    if (typeof stream !== 'object') return undefined
    return { send: (bytes) => void stream.write([bytes]), leave: () => stream.leave({ reason: 'closed' }, true) }
  }

  /** As whoever asks, and at once a client like one of another node. */
  #visitHere(pool: PoolId, who: Guest, errand: Errand): ErrandWay {
    const { daemon, reception } = this.#options
    const { principal, name, rights } = who
    const identity: Identity = { principal, name, rights, via: 'cluster', apart: `from ${this.#config.node}` }
    let isOver = false
    const peer = daemon.openPeer(
      { door: 'cluster', isLocal: false, identity, pool },
      (client, tell) => ({
        write: (buffers: readonly Buffer[]): number => {
          // The kernel has its buffers back, and is in the middle of writing.
          const bytes = Buffer.concat(buffers)
          setImmediate(() => errand.received(bytes))
          return 0
        },
        pause: () => {},
        resume: () => {},
        close: () => {
          isOver = true
        },
        send: (bytes: Buffer) => tell({ type: 'client-received', client, bytes }),
        leave: () => {
          if (!isOver) tell({ type: 'client-closed', client })
          isOver = true
        },
      }),
      (client) => reception().openedFromNode(client, this.#config.node),
    )
    return peer
  }

  /** A worker of this node has the session. */
  note(pool: PoolId, session: SessionId): void {
    if (matchesAny(this.#config.exports, pool)) this.#directory.note(pool, session)
  }

  // ---- for the cluster ----

  publish(subject: string, message: Buffer): boolean {
    return this.#broker.publish(subject, message)
  }

  flushSoon(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    // What leaves together has been written together: the daemon waits for the end of a turn where that pays.
    queueMicrotask(this.#flush)
  }

  get maxGuests(): number {
    return this.#own.bus.limits.maxClients
  }

  #armReceipts(): void {
    const dueMs = this.#cluster.receiptDueMs
    if (dueMs === undefined || this.#receipts !== undefined) return
    this.#receipts = setTimeout(
      () => {
        this.#receipts = undefined
        this.flushSoon()
      },
      Math.max(1, Math.ceil(dueMs - performance.now())),
    )
  }

  opened(node: string, stream: Stream, bytes: Buffer): void {
    const opening = readOpening(bytes)
    if (opening?.pool === NODE_DESK) return this.#openDesk(stream)
    const why = opening === undefined ? 'it cannot be read' : this.#whyRefused(opening)
    if (opening === undefined || why !== undefined) return stream.leave({ reason: 'refused', why: why! }, true)
    this.#receive(node, stream, opening)
  }

  #openDesk(stream: Stream): void {
    if (this.#desks >= CLUSTER.maxDesks) return stream.leave({ reason: 'refused', why: 'too many ask' }, true)
    this.#desks++
    stream.adopt(new NodeDesk(stream, this.#options.tellTrace, () => this.#desks--))
  }

  #whyRefused({ pool, vias }: Opening): string | undefined {
    const agent = agentIn(pool)
    const isOwn =
      agent === undefined
        ? this.#own.bus.pools.some(({ id, isAioOnly }) => id === pool && isAioOnly !== true)
        : this.#own.agents.some(({ name }) => name === agent)
    if (!isOwn || !matchesAny(this.#config.exports, agent ?? pool)) return 'the node has no such pool'
    const isLoop = vias.some((via) => viaFault(via, this.#options.busId) !== undefined)
    return isLoop ? 'the way leads back to a bus that it has passed, or through too many of them' : undefined
  }

  #receive(node: string, stream: Stream, opening: Opening): void {
    const { daemon, reception } = this.#options
    const { pool, vias, cause } = opening
    const identity = reception().receiveFromNode(opening, node)
    const endingOf = () => ({ reason: daemon.isShuttingDown ? ('shutting_down' as const) : ('closed' as const) })
    let id: ClientId | undefined
    const client = daemon.openPeer(
      {
        door: 'cluster',
        isLocal: false,
        identity,
        pool,
        ...(vias[0] === undefined ? {} : { via: vias[0] }),
        ...(cause === undefined ? {} : { cause }),
      },
      (number, tell) => {
        const gone = (): void => void this.#guests.set(pool, (this.#guests.get(pool) ?? 1) - 1)
        return new StreamClient(number, stream, { tell, endingOf, gone })
      },
      (number) => {
        id = number
        this.#guests.set(pool, (this.#guests.get(pool) ?? 0) + 1)
        reception().openedFromNode(number, node)
      },
    )
    for (const via of vias.slice(1)) daemon.apply({ type: 'client-via', client: id!, via })
    client.open()
  }

  /** Several changes of one turn are told at once; the kernel may be in the middle of an event. */
  changed(): void {
    if (this.#isChangeDue) return
    this.#isChangeDue = true
    const waitMs = this.#tellAgainMs - performance.now()
    if (waitMs > 0) setTimeout(() => this.#tellChange(), waitMs).unref()
    else setImmediate(() => this.#tellChange())
  }

  #tellChange(): void {
    const beganMs = performance.now()
    this.#isChangeDue = false
    this.adopt(this.#own)
    if (this.#places.size >= CLUSTER.maxPlaces)
      this.log('warn', 'other nodes have more pools than this one imports: say which with "import"', {
        imported: this.#places.size,
      })
    if (!this.#options.daemon.isShuttingDown) this.#options.changed()
    const endedMs = performance.now()
    this.#tellAgainMs = endedMs + (endedMs - beganMs) * (1 / CLUSTER.mostTellingShare - 1)
  }

  log(level: 'info' | 'warn' | 'error', text: string, about: Record<string, unknown>): void {
    this.#options.log.write(level, text, about)
  }

  // ---- for those who look on ----

  get status(): ClusterStatus {
    const nodes = this.#cluster.nodes(performance.now()).map(({ agents: _agents, pools, ...node }) => ({
      ...node,
      pools: pools
        .filter(({ id }) => matchesAny(this.#config.imports, id))
        .map(({ id, ready, workers, outstanding, sessions }) => ({ id, ready, workers, outstanding, sessions })),
    }))
    const { name, node } = this.#config
    const server = this.#broker.server ?? null
    return {
      cluster: name,
      node,
      nats: { connected: this.#broker.isUp, server, directory: this.#directory.isOpen },
      nodes: nodes.sort((one, other) => (one.node < other.node ? -1 : 1)),
    }
  }

  get figures(): ClusterFigures {
    const { counts, junk, lost } = this.#cluster
    return {
      ...this.status,
      bytes: { sent: counts.bytesSent, received: counts.bytesReceived },
      frames: { sent: counts.framesSent, received: counts.framesReceived },
      resent_bytes: counts.resent,
      stalled: counts.stalled,
      lost,
      junk: Object.fromEntries(junk),
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
