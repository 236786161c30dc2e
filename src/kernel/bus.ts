/**
 * The whole kernel behind one entry: `apply(event, nowMs)` changes the state and returns what is to be done.
 *
 * It touches no socket, process, file, clock or source of chance. The same events at the same times yield the same actions
 * and the same bytes in the same outboxes, always.
 */
import { callerOf } from './calls.ts'
import { Core } from './core.ts'
import type { DialectTable } from './dialect-table.ts'
import { Dialects } from './dialects.ts'
import type { Action, BusEvent, WorkerGeneration, Write } from './events.ts'
import { faultOf } from './faults.ts'
import { Flow } from './flow.ts'
import {
  describeKept,
  findKept,
  type KeptRow,
  type KeptWish,
  listKept,
  liveSessions,
  type OpenQuestion,
  openQuestions,
  type Viewer,
} from './kept/session-view.ts'
import type { WorkerState } from './lifecycle.ts'
import { FIXED } from './limits.ts'
import { Client, type Peer, type Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import { LOCAL_IDENTITY, type Rights } from './rights.ts'
import { type Roll, takeRoll } from './roll.ts'
import { Router } from './router.ts'
import { type BusSnapshot, takeSnapshot } from './snapshot.ts'
import { StuckClock } from './stuck.ts'
import { Supervisor } from './supervisor.ts'
import { Switchboard } from './switchboard.ts'
import type { SpanCounts } from './traffic.ts'
import { cameBy, type Via } from './via.ts'
import type { BusSpec, CallCause, ClientId, PoolId, Principal, WorkerId } from './vocabulary.ts'

/** A client, as a worker of its own is told of it. */
export interface Guest {
  readonly client: ClientId
  readonly principal: Principal
  readonly name: string
  readonly rights: Rights
  readonly vias: readonly Via[]
  /** The call of an agent for which it calls another. */
  readonly cause?: CallCause
}

export interface PoolLoad {
  readonly ready: number
  readonly workers: number
  readonly outstanding: number
  readonly sessions: number
}

type Apply = { readonly [T in BusEvent['type']]: (event: Extract<BusEvent, { type: T }>) => void }

export class Bus {
  readonly #core: Core
  readonly #flow: Flow
  readonly #board: Switchboard
  readonly #router: Router
  readonly #supervisor: Supervisor
  readonly #stuck: StuckClock
  readonly #apply: Apply

  /** `chance` yields numbers in [0, 1); give it a seed to repeat a run. */
  constructor(spec: BusSpec, tables: readonly DialectTable[], chance: () => number) {
    this.#core = new Core(spec, chance)
    const dialects = new Dialects(tables)
    this.#flow = new Flow(this.#core, {
      takeLine: (peer, bytes, start, end) => this.#router.takeLine(peer, bytes, start, end),
      overflowed: (peer) => this.#router.overflowed(peer),
      finished: (peer) => this.#finished(peer),
    })
    const host = {
      closeClient: (client: Client, waitMs?: number) => this.#closeClient(client, waitMs),
      maybeFinish: (client: Client) => this.#maybeFinish(client),
    }
    this.#board = new Switchboard(this.#core, this.#flow, host, dialects)
    this.#router = new Router(this.#board)
    this.#supervisor = new Supervisor(this.#core, this.#flow, dialects, {
      workerSpawned: (worker) => this.#router.workerSpawned(worker),
      workerOpened: (worker) => this.#router.workerOpened(worker),
      workerEnded: (worker) => this.#router.departures.workerEnded(worker),
      workerLeft: (pool) => this.#router.workerLeft(pool),
      poolEmptied: (pool) => this.#router.poolEmptied(pool),
    })
    this.#board.supervisor = this.#supervisor
    this.#stuck = new StuckClock(this.#core, this.#flow, {
      closeStuckClient: (client, why) => this.#closeStuck(client, why),
      endStuckWorker: (worker) =>
        this.#supervisor.endBroken(worker, 'worker_stalled', { why: 'it did not read for backpressure_timeout_sec' }),
    })
    this.#apply = this.#makeTable()
  }

  /** Starts the workers of all pools. */
  start(nowMs: number): readonly Action[] {
    return this.#run(nowMs, () => {
      for (const pool of this.#core.spec.pools) this.#supervisor.addPool(pool)
    })
  }

  apply(event: BusEvent, nowMs: number): readonly Action[] {
    return this.#run(nowMs, () => (this.#apply[event.type] as (event: BusEvent) => void)(event))
  }

  /** What is to be written now; the caller hands each to the system and reports it with `wrote`. */
  takeWrites(): readonly Write[] {
    const { dirty } = this.#core
    if (dirty.length === 0) return dirty
    this.#core.dirty = []
    let count = 0
    for (const peer of dirty) {
      peer.isDirty = false
      if (peer.outbox.isStalled || peer.outbox.isEmpty) continue
      peer.outbox.take()
      dirty[count++] = peer
    }
    dirty.length = count
    return dirty
  }

  /** The system has been given `write` and still holds `pendingBytes`; when it holds none later, an event says so. */
  wrote(write: Write, pendingBytes: number, nowMs: number): readonly Action[] {
    this.#core.nowMs = Math.max(nowMs, this.#core.nowMs)
    this.#core.actions = []
    if (write.kind === 'client') this.#withClient(write.id, (client) => this.#clientWrote(client, pendingBytes))
    else {
      const of = { worker: write.id, generation: write.generation }
      this.#withWorker(of, (worker) => this.#workerWrote(worker, pendingBytes))
    }
    return this.#conclude()
  }

  get phase(): string {
    return this.#core.phase
  }

  /** When a `tick` is due. */
  nextDeadlineMs(): number | undefined {
    return this.#core.timers.nextAtMs()
  }

  /** What has happened lately in a pool; empty where that is not counted. */
  trafficOf(pool: PoolId, nowMs: number = this.#core.nowMs): readonly SpanCounts[] {
    return this.#core.traffic.of(pool).counts(nowMs)
  }

  /** As it is at `nowMs`; left out: as it was at the last event. */
  snapshot(nowMs: number = this.#core.nowMs): BusSnapshot {
    return takeSnapshot(this.#core, this.#board.kept, nowMs)
  }

  roll(): Roll {
    return takeRoll(this.#core)
  }

  /** Sessions that may outlive their clients, as somebody may see them. */
  keptSessions(viewer: Viewer, wish: KeptWish): ReturnType<typeof listKept> {
    return listKept(this.#board, viewer, wish)
  }

  keptSession(viewer: Viewer, session: string, pool?: string): KeptRow | undefined {
    const kept = findKept(this.#board, viewer, session, pool)
    return kept === undefined ? undefined : describeKept(this.#board, kept)
  }

  liveSessions(viewer: Viewer): ReturnType<typeof liveSessions> {
    return liveSessions(this.#board, viewer)
  }

  /** What agents wait for, in kept sessions. */
  openQuestions(): readonly OpenQuestion[] {
    return openQuestions(this.#board)
  }

  #run(nowMs: number, change: () => void): readonly Action[] {
    this.#core.nowMs = Math.max(nowMs, this.#core.nowMs)
    this.#core.actions = []
    // What has come is read before anything is judged to be late.
    change()
    this.#core.timers.fire(this.#core.nowMs)
    return this.#conclude()
  }

  #conclude(): readonly Action[] {
    while (this.#board.waiting.settle() || this.#flow.settle()) {}
    if (this.#core.phase !== 'running') this.#proceedShutdown()
    this.#stuck.arm()
    return this.#core.actions
  }

  #makeTable(): Apply {
    return {
      'client-opened': (event) => this.#open(event),
      'client-via': ({ client, via }) => this.#withClient(client, (peer) => cameBy(peer, via)),
      'client-judged': (event) =>
        this.#withClient(event.client, (client) => this.#router.admission.judged(client, event)),
      gathered: (event) => this.#withClient(event.client, (client) => this.#board.places.gathered(client, event)),
      located: (event) => this.#withClient(event.client, (client) => this.#board.places.located(client, event)),
      'client-revoked': ({ client, isExpired }) =>
        this.#withClient(client, (peer) => this.#router.admission.revoke(peer, isExpired)),
      'audit-changed': ({ isAvailable }) => {
        this.#core.isAudited = isAvailable
      },
      'rights-changed': ({ principal, rights }) => this.#router.admission.changeRights(principal, rights),
      'client-received': ({ client, bytes }) => this.#withClient(client, (peer) => this.#flow.receive(peer, bytes)),
      'client-ended': ({ client }) => this.#withClient(client, (peer) => this.#flow.finish(peer)),
      'client-closed': ({ client, isSettled }) =>
        this.#withClient(client, (peer) => this.#clientGone(peer, isSettled === true)),
      'client-reply': (event) => this.#withClient(event.client, (client) => this.#reply(client, event)),
      'call-cancelled': (event) =>
        this.#withClient(event.client, (client) => {
          this.#router.calls.settle(client, event.id)
          if (event.id !== undefined) this.#flow.excuse(client, event.id)
          this.#maybeFinish(client)
        }),
      'client-serves': ({ client, isServing }) =>
        this.#withClient(client, (peer) => {
          peer.servesCalls = isServing
        }),
      'member-reply': (event) =>
        this.#withClient(event.client, (client) => this.#board.aggregates.reply(client, event)),
      'member-waived': ({ client, row }) => this.#withClient(client, (peer) => this.#board.aggregates.waive(peer, row)),
      'worker-reply': (event) =>
        this.#withWorker(event, (worker) => {
          if (!worker.isAlive) return
          this.#flow.sendLine(worker, event.bytes)
          this.#holdBack(worker, event.source)
        }),
      'client-wrote': (event) =>
        this.#withClient(event.client, (client) => this.#clientWrote(client, event.pendingBytes)),
      'worker-restart': ({ worker: id }) => {
        const worker = this.#core.workers.get(id)
        if (worker !== undefined) this.#supervisor.restart(worker)
      },
      'worker-opened': (event) =>
        this.#withWorker(event, (worker) => this.#supervisor.opened(worker, event.facts ?? {})),
      'worker-failed': (event) =>
        this.#withWorker(event, (worker) => this.#supervisor.failed(worker, event.why, event.again)),
      'worker-received': (event) => this.#withWorker(event, (worker) => this.#workerReceived(worker, event.bytes)),
      'worker-silent': (event) => this.#withWorker(event, (worker) => this.#workerSilent(worker, event.pipe)),
      'worker-ended': (event) => this.#withWorker(event, (worker) => this.#supervisor.ended(worker, event)),
      'worker-wrote': (event) => this.#withWorker(event, (worker) => this.#workerWrote(worker, event.pendingBytes)),
      tick: () => {},
      calendar: ({ offsetMs }) => {
        this.#core.calendarOffsetMs = offsetMs
      },
      'journal-opened': (event) => this.#board.kept.opened(event),
      'journal-changed': ({ isWriting }) => this.#board.kept.changed(isWriting),
      'journal-written': (event) => this.#board.kept.written(event),
      'journal-swept': ({ keys }) => this.#board.kept.table.swept(keys),
      'journal-lines': (event) => this.#board.kept.history.lines(event),
      reload: ({ spec }) => this.#reload(spec),
      shutdown: () => this.#shutdown(),
    }
  }

  #withClient(id: ClientId, change: (client: Client) => void): void {
    const client = this.#core.clients.get(id) ?? this.#core.exchanges.get(id)
    if (client !== undefined) change(client)
  }

  /** News of a process that the slot no longer holds is no news. */
  #withWorker(of: { worker: WorkerId; generation: number }, change: (worker: Worker) => void): void {
    const worker = this.#core.workers.get(of.worker)
    if (worker !== undefined && worker.generation === of.generation) change(worker)
  }

  // ---- clients ----

  #open(event: Extract<BusEvent, { type: 'client-opened' }>): void {
    const { limits } = this.#core.spec
    const { maxClientLineBytes } = this.#core
    // What the gateway adds to a line that was allowed must not make it too long.
    const maxLineBytes = event.door === 'internal' ? Number.POSITIVE_INFINITY : maxClientLineBytes
    const client = new Client(event, maxLineBytes, limits.maxOutputQueueBytes)
    if (client.isInternal) return this.#openInternal(client, event)
    const isOneTooMany = this.#core.clients.size >= limits.maxClients
    this.#core.clients.set(client.id, client)
    this.#core.totals.clients++
    if (event.via !== undefined) cameBy(client, event.via)
    const { admission } = this.#router
    if (event.mustProve) admission.expect(client, event.from ?? '')
    else admission.admit(client, event.identity ?? LOCAL_IDENTITY)
    if (client.state !== 'open' || (!isOneTooMany && this.#core.phase === 'running')) return
    const reason = isOneTooMany ? 'too_many_clients' : 'shutting_down'
    this.#core.countRefusal(reason)
    this.#flow.sendFault(client, 'null', reason)
    this.#closeClient(client)
  }

  #openInternal(client: Client, { behalfOf }: Extract<BusEvent, { type: 'client-opened' }>): void {
    if (behalfOf !== undefined) client.behalf = this.#core.clients.get(behalfOf)
    if (client.isDelegate) client.hasSpoken = true
    client.owner = this.#core.principals.local
    this.#core.exchanges.set(client.id, client)
    if (this.#core.phase === 'running' || this.#core.phase === 'draining') return
    this.#core.actions.push({ do: 'exchange-failed', client: client.id, error: faultOf('shutting_down') })
    this.#closeClient(client)
  }

  /** The gateway answers; a worker that fills the queue of a client that does not read waits for it (contract 8.3). */
  #reply(client: Client, { bytes, isFinal, id, traceId, source }: Extract<BusEvent, { type: 'client-reply' }>): void {
    if (isFinal) this.#router.calls.settle(client, id, traceId)
    this.#flow.sendLine(client, bytes)
    this.#holdBack(client, source)
    if (isFinal) this.#maybeFinish(client)
  }

  /** A reply may have filled the queue of its caller: whoever asks and does not read causes the bytes as well. */
  #holdBack(caller: Peer, source: WorkerGeneration | undefined): void {
    if (!caller.outbox.isFull) return
    if (source !== undefined) this.#withWorker(source, (worker) => this.#flow.fill(worker, caller))
    this.#flow.fill(caller, caller)
  }

  /** What a client may do; undefined: everything. */
  rightsOf(client: ClientId): Rights | undefined {
    const owner = this.#core.clients.get(client)?.owner
    return owner === undefined || (owner.isUnbound && owner.rights.role === 'admin') ? undefined : owner.rights
  }

  /** The workers of a pool, as far as those care who watch over its members. */
  workersOf(pool: PoolId): readonly { readonly state: WorkerState; readonly generation: number }[] {
    return (this.#core.pools.get(pool)?.workers ?? []).map(({ state, generation }) => ({ state, generation }))
  }

  /** Whose the worker is, where each client has its own (contract 14.9); undefined: nobody's yet. */
  guestOf(id: WorkerId): Guest | undefined {
    return guestOf(this.#core.workers.get(id)?.holder)
  }

  /** The client, as other nodes are told of it. */
  travellerOf(id: ClientId): Guest | undefined {
    return guestOf(this.#core.clients.get(id))
  }

  /** What a pool has to do, and how many more clients it can take (contract 14.2, 14.3). */
  loadOf(id: PoolId): PoolLoad {
    const pool = this.#core.pools.get(id)
    const load = { ready: pool?.openings ?? 0, workers: 0, outstanding: 0, sessions: 0 }
    for (const { outstanding, ownerless, sessions } of pool?.family.flatMap(({ workers }) => workers) ?? []) {
      load.workers++
      load.outstanding += outstanding.size - ownerless.size
      load.sessions += sessions.size
    }
    return load
  }

  /** The name of its principal, which rights and variables are given to. */
  nameOf(client: ClientId): string | undefined {
    return this.#core.clients.get(client)?.owner?.name
  }

  /** Whether what the gateway says to this caller would wait. */
  isFull(caller: ClientId | WorkerGeneration): boolean {
    return this.#peerOf(caller)?.outbox.isFull === true
  }

  /** Whether it is not to be read from now, whatever was to be done before that and is done late; undefined: it is gone. */
  isPaused(peer: ClientId | WorkerGeneration): boolean | undefined {
    return this.#peerOf(peer)?.isPaused
  }

  #peerOf(peer: ClientId | WorkerGeneration): Peer | undefined {
    if (typeof peer === 'number') return this.#core.clients.get(peer)
    const worker = this.#core.workers.get(peer.worker)
    return worker?.generation === peer.generation ? worker : undefined
  }

  #clientWrote(client: Client, pendingBytes: number): void {
    this.#flow.wrote(client, pendingBytes)
    if (client.seats.size > 0) this.#board.kept.history.drained(client)
    if (client.state === 'closing' && client.outbox.isEmpty) this.#hangUp(client, 'flush')
  }

  #finished(peer: Peer): void {
    if (peer.kind === 'worker') this.#supervisor.finished(peer)
    // For a client that speaks a stateful protocol the end of its input is its end (contract 4.1.2).
    else if ((peer.introductions.size > 0 || peer.usesAggregate) && peer.door !== 'stdio') this.#hangUp(peer, 'flush')
    else this.#closeClient(peer)
  }

  /** It sends no more, or is not listened to: it gets what it is owed, for a while, then it is closed (contract 4.1.2). */
  #closeClient(client: Client, waitMs = this.#core.spec.limits.halfCloseTimeoutMs): void {
    if (client.state !== 'open') return
    client.state = 'half-closed'
    this.#flow.deafen(client)
    this.#router.departures.refuseQuestionsOf(client)
    client.patience = this.#core.timers.set(this.#core.nowMs + waitMs, () => this.#hangUp(client, 'drop'))
    this.#maybeFinish(client)
  }

  #maybeFinish(client: Client): void {
    if (client.state !== 'half-closed' || client.pendingCount > 0) return
    client.state = 'closing'
    if (client.outbox.isEmpty) this.#hangUp(client, 'flush')
  }

  #closeStuck(client: Client, why: string): void {
    this.#core.log('warn', `client closed: ${why}`, { client: client.id, reason: 'backpressure' })
    this.#core.drop('client_stuck')
    this.#hangUp(client, 'drop')
  }

  #hangUp(client: Client, how: 'flush' | 'drop'): void {
    if (client.state === 'closed') return
    this.#core.actions.push({ do: 'close-client', client: client.id, how })
    this.#clientGone(client)
  }

  #clientGone(client: Client, isSettled = false): void {
    if (client.state === 'closed') return
    client.state = 'closed'
    if (client.patience !== undefined) this.#core.timers.cancel(client.patience)
    // What its end sets free may be its own backlog: nothing more is taken from it.
    client.isDeaf = true
    if (client.isInternal) this.#core.exchanges.delete(client.id)
    else this.#core.clients.delete(client.id)
    if (client.isCaller || client.usesAggregate) this.#core.actions.push({ do: 'caller-gone', from: callerOf(client) })
    this.#router.departures.clientGone(client, isSettled)
    if (!client.isInternal) this.#router.admission.forget(client)
    this.#flow.forget(client)
    if (client.door === 'stdio') this.#shutdown()
  }

  // ---- workers ----

  #workerReceived(worker: Worker, bytes: Buffer): void {
    worker.lastActivityMs = this.#core.nowMs
    this.#flow.receive(worker, bytes)
  }

  #workerWrote(worker: Worker, pendingBytes: number): void {
    worker.lastActivityMs = this.#core.nowMs
    this.#flow.wrote(worker, pendingBytes)
  }

  #workerSilent(worker: Worker, pipe: 'stdin' | 'stdout'): void {
    if (pipe === 'stdout') this.#flow.finish(worker)
    else this.#supervisor.stdinBroke(worker)
  }

  // ---- the bus as a whole ----

  /** Pools that are the same stay as they are; the others start anew beside their old workers (contract 7.5). */
  #reload(spec: BusSpec): void {
    if (this.#core.phase !== 'running') return this.#core.log('warn', 'reload refused: the bus is shutting down')
    const wanted = new Map(spec.pools.map((pool) => [pool.id, pool]))
    this.#core.spec = spec
    this.#core.traffic.keep(new Set(wanted.keys()))
    const retired: Pool[] = []
    for (const pool of [...this.#core.pools.values()]) {
      const next = wanted.get(pool.spec.id)
      if (next?.revision === pool.spec.revision && next.instances >= pool.spec.instances) {
        this.#supervisor.growPool(pool, next)
        continue
      }
      this.#core.pools.delete(pool.spec.id)
      this.#core.log('info', 'pool retires', { pool: pool.spec.id })
      retired.push(pool)
    }
    for (const pool of spec.pools) if (!this.#core.pools.has(pool.id)) this.#supervisor.addPool(pool)
    for (const pool of retired.flatMap(({ family }) => family)) {
      const successor = this.#core.pools.get(pool.spec.id)
      if (successor !== undefined) this.#router.poolSucceeded(pool, successor)
      this.#supervisor.retirePool(pool)
    }
  }

  /** Contract 7.4: drain, flush, end the workers. */
  #shutdown(): void {
    if (this.#core.phase !== 'running') return
    this.#core.phase = 'draining'
    this.#core.actions.push({ do: 'stop-accepting' })
    this.#core.log('info', 'shutting down', { outstanding: this.#router.owedCount })
    this.#core.timers.set(this.#core.nowMs + this.#core.spec.limits.drainTimeoutMs, () => this.#flush())
  }

  #proceedShutdown(): void {
    if (this.#core.phase === 'draining' && this.#router.owedCount === 0) this.#flush()
    if (this.#core.phase === 'flushing' && this.#core.clients.size + this.#core.exchanges.size === 0) this.#endWorkers()
    if (
      this.#core.phase === 'ending' &&
      [...this.#core.workers.values()].every((worker) => worker.state === 'stopped')
    ) {
      this.#core.phase = 'finished'
      this.#core.actions.push({ do: 'finished' })
    }
  }

  #flush(): void {
    if (this.#core.phase !== 'draining') return
    this.#core.phase = 'flushing'
    if (this.#core.spec.gateway !== undefined || this.#hasAggregates) this.#core.actions.push({ do: 'fail-calls' })
    this.#router.departures.failOutstanding()
    this.#router.admission.dismiss()
    for (const client of this.#core.everyClient()) this.#closeClient(client)
    this.#core.timers.set(this.#core.nowMs + FIXED.flushMs, () => {
      for (const client of this.#core.everyClient()) this.#hangUp(client, 'drop')
    })
  }

  get #hasAggregates(): boolean {
    return this.#core.spec.pools.some(({ isAggregate }) => isAggregate === true)
  }

  #endWorkers(): void {
    this.#core.phase = 'ending'
    for (const worker of [...this.#core.workers.values()]) this.#supervisor.step(worker, 'stop')
  }
}

function guestOf(client: Client | undefined): Guest | undefined {
  const guest = client?.behalf ?? client
  if (guest?.owner === undefined) return undefined
  const { id: principal, name, rights } = guest.owner
  const who = { client: guest.id, principal, name, rights }
  const cause = client?.cause
  // Calls of agents that go in circles end by their depth.
  return cause === undefined ? { ...who, vias: guest.vias ?? [] } : { ...who, vias: [], cause }
}
