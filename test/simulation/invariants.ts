/**
 * What must hold of the tables and queues of the kernel after every event (contract 7, 8.3): both ends of every entry
 * agree, nothing points to a peer that is gone, and everything has its bound.
 */
import type { Core } from '../../src/kernel/core.ts'
import { emptyMap, emptySet } from '../../src/kernel/empty.ts'
import type { Gate } from '../../src/kernel/gate.ts'
import type { Client, Peer, Worker } from '../../src/kernel/peers.ts'
import { taskClientOf } from '../../src/kernel/tasks.ts'
import type { WorkerId } from '../../src/kernel/vocabulary.ts'
import type { WaitingLine } from '../../src/kernel/waiting.ts'
import { demand } from './violation.ts'

/** Above this, finished blocks of a queue count whole. */
const BLOCK_BYTES = 16 * 1024
/** Room for the error line of an outstanding request, and for a line of the bus's own. */
const ERROR_LINE_BYTES = 600

/** The newest generation of every number so far. */
const lastGenerations = new WeakMap<Core, Map<WorkerId, number>>()

/** What each queue retained after the event before. */
const retainedBefore = new WeakMap<Peer, number>()

/** `source`: whose bytes the event brought. */
export function inspect(core: Core, source: Peer | undefined): void {
  demand(
    emptyMap().size + emptySet().size === 0,
    'tables tidy',
    'something stands in the tables of those who have nothing',
  )
  let sessions = 0
  let retainedBytes = 0
  for (const client of core.clients.values()) {
    inspectClient(core, client)
    inspectPeer(core, client, source)
    sessions += client.sessions.size
    retainedBytes += client.countedBytes
  }
  if (core.exchanges.size > 0)
    for (const exchange of core.exchanges.values()) {
      inspectClient(core, exchange)
      retainedBytes += exchange.countedBytes
    }
  let outstanding = 0
  let bound = 0
  for (const worker of core.workers.values()) {
    inspectWorker(core, worker)
    inspectHeld(worker)
    inspectGeneration(core, worker)
    inspectBonds(core, worker)
    inspectPeer(core, worker, source)
    outstanding += worker.outstanding.size
    bound += worker.sessions.size
    retainedBytes += worker.countedBytes
  }
  const openCount = [...core.clients.values()].filter(({ state }) => state === 'open').length
  demand(openCount <= core.spec.limits.maxClients, 'bounded', () => `${openCount} clients are served`)
  inspectPools(core)
  inspectWaiting(core)
  demand(
    core.sessions.size === sessions && sessions === bound,
    'tables tidy',
    () => `sessions: ${core.sessions.size} known, clients have ${sessions}, workers ${bound}`,
  )
  demand(
    core.owed.size === outstanding,
    'tables tidy',
    () => `requests: ${core.owed.size} known, ${outstanding} at workers`,
  )
  demand(
    core.retainedBytes === retainedBytes,
    'bounded',
    () => `retained: ${core.retainedBytes} counted, ${retainedBytes} held`,
  )
}

function inspectClient(core: Core, client: Client): void {
  const { limits } = core.spec
  demand(client.state !== 'closed', 'tables tidy', () => `client ${client.id} is closed and kept`)
  demand(client.pendingCount >= 0, 'tables tidy', () => `client ${client.id} has ${client.pendingCount} requests`)
  const roomy = Math.max(limits.maxPendingPerClient, 0)
  // Who shows who it is, is owed an answer for that too.
  const most = roomy + (isJudged(client) ? 1 : 0)
  demand(client.pendingCount <= most, 'bounded', () => `client ${client.id} has ${client.pendingCount} requests`)
  demand(client.questions.size <= roomy, 'bounded', () => `client ${client.id} has ${client.questions.size} questions`)
  const names = client.sessions.size + client.lost.size
  demand(names <= limits.maxSessionsPerClient, 'bounded', () => `client ${client.id} has ${names} sessions`)
  let linked = 0
  for (let request = client.newest; request !== undefined; request = request.older) {
    linked++
    const { worker, route } = request
    const isKnown =
      worker === undefined
        ? request.isAtGateway ||
          route?.place?.routes.has(route) === true ||
          (request === client.newest && isJudged(client))
        : worker.outstanding.get(request.key) === request
    demand(
      isKnown,
      'tables tidy',
      () => `client ${client.id} waits for ${String(request.key)}, which nobody owes and nothing holds`,
    )
  }
  demand(
    linked === client.pendingCount,
    'tables tidy',
    () => `client ${client.id} counts ${client.pendingCount} and has ${linked}`,
  )
  for (const session of client.sessions.values())
    demand(
      session.worker.sessions.get(session.id) === session && core.workers.get(session.worker.id) === session.worker,
      'tables tidy',
      () => `session ${session.id} of client ${client.id} has no worker`,
    )
  for (const question of client.questions.values())
    demand(
      question.worker.generation === question.generation &&
        core.workers.get(question.worker.id) === question.worker &&
        !isGone(question.worker),
      'tables tidy',
      () => `client ${client.id} keeps a question of a worker that has ended`,
    )
  for (const introduction of client.introductions.values())
    for (const bond of introduction.bonds.values())
      demand(bond.worker.bonds.has(bond), 'tables tidy', () => `a bond of client ${client.id} is unknown to its worker`)
}

/** It is held up until it is known who it is (contract 9.3); no queue holds it up. */
function isJudged({ blockedOn }: Client): boolean {
  return blockedOn !== undefined && blockedOn.owner === undefined
}

function isThere({ clients, exchanges }: Core, client: Client): boolean {
  return (clients.get(client.id) ?? exchanges.get(client.id)) === client
}

function isGone(worker: Worker): boolean {
  return worker.state === 'stopped' || worker.state === 'parked' || worker.state === 'backing_off'
}

function inspectWorker(core: Core, worker: Worker): void {
  const isHere = (client: Client | undefined): boolean => client === undefined || isThere(core, client)
  const at = (): string => `worker ${worker.id}.${worker.generation} (${worker.state})`
  demand(
    worker.ownerless.size <= worker.outstanding.size,
    'tables tidy',
    () => `${at()} has more ownerless ids than ids`,
  )
  for (const request of worker.outstanding.values())
    demand(isHere(request.client), 'tables tidy', () => `${at()} owes an answer to a client that is gone`)
  for (const session of worker.sessions.values())
    demand(
      isHere(session.driver) && session.driver?.sessions.get(session.id) === session,
      'tables tidy',
      () => `${at()} keeps session ${session.id} of a client that is gone`,
    )
  for (const question of worker.questions.values())
    demand(isHere(question.client), 'tables tidy', () => `${at()} has a question at a client that is gone`)
  for (const request of worker.claims.values())
    demand(
      worker.outstanding.get(request.key) === request,
      'tables tidy',
      () => `${at()} keeps the claim of an answered request`,
    )
  for (const bond of worker.bonds)
    demand(isHere(bond.client), 'tables tidy', () => `${at()} has a bond with a client that is gone`)
  demand(isHere(worker.holder), 'tables tidy', () => `${at()} is held by a client that is gone`)
  for (const taskId of worker.tasks.keys())
    demand(isHere(taskClientOf(worker, taskId)), 'tables tidy', () => `${at()} has a task of a client that is gone`)
  for (const table of [worker.elicitations, worker.servers])
    for (const owner of table.values())
      demand(isHere(owner), 'tables tidy', () => `${at()} remembers a client that is gone`)
  for (const subscribers of worker.subscriptions.values())
    for (const client of subscribers)
      demand(isHere(client), 'tables tidy', () => `${at()} has a subscription of a client that is gone`)
  demand(worker.announcing >= 0, 'tables tidy', () => `${at()} has ${worker.announcing} announcements under way`)
  demand(
    worker.held.length === 0 || worker.announcing > 0,
    'tables tidy',
    () => `${at()} holds lines for sessions that nobody will announce`,
  )
  if (!isGone(worker)) return
  demand(
    worker.outstanding.size + worker.sessions.size + worker.questions.size === 0,
    'tables tidy',
    () => `${at()} has ended and owes something`,
  )
}

function inspectPeer(core: Core, peer: Peer, source: Peer | undefined): void {
  const name = (): string => `${peer.kind} ${peer.id}`
  const { retainedBytes, limitBytes } = peer.outbox
  const isFilled = retainedBytes > limitBytes && retainedBytes > (retainedBefore.get(peer) ?? 0)
  retainedBefore.set(peer, retainedBytes)
  const isUnstopped = source !== undefined && source.blockedOn === undefined && !source.isDeaf
  // All that waited for a lease comes at once, whoever is being read from.
  const isLeased = peer.kind === 'worker' && peer.pool.spec.sharing === 'lease'
  // What the event let go on may have filled its own queue, and be stopped already, wherever.
  const isHeldUp = peer.kind === 'worker' && peer.lobby.gate.sources.size > 0
  const isOwnDoing = peer.blockedOn !== undefined || peer.isDeaf || isHeldUp
  // So may somebody who has gone in it.
  if (core.actions.some((action) => action.do === 'close-client')) return
  if (isFilled && isUnstopped && !isLeased && !isOwnDoing && peer.gate.sources.size === 0)
    demand(
      false,
      'bounded',
      `the full queue of ${name()} was filled by ${source.kind} ${source.id}, which is not stopped`,
    )
  if (retainedBytes > limitBytes) {
    const most = limitBytes + boundBeyond(core, peer) + (retainedBytes > BLOCK_BYTES ? 2 * BLOCK_BYTES : 0)
    demand(retainedBytes <= most, 'bounded', () => `the queue of ${name()} has ${retainedBytes} bytes, at most ${most}`)
  }
  demand(
    !peer.isDeaf || peer.splitter.retainedBytes === 0,
    'bounded',
    () => `${name()} is not listened to, and half a line of it is kept`,
  )
  if (peer.blockedOn === undefined) return
  demand(peer.blockedOn.sources.has(peer), 'goes on', () => `${name()} waits where nobody knows of it`)
  demand(isClosed(core, peer.blockedOn), 'goes on', () => `${name()} waits for a queue that has room`)
}

/**
 * A queue is full above its limit; its bound is the limit, one line for each source that waits for it, and the lines that
 * are reserved (contract 8.3). What waited for a worker comes at once: as much as the waiting room or the leases hold.
 */
function boundBeyond(core: Core, peer: Peer): number {
  const lineBytes = core.maxClientLineBytes + ERROR_LINE_BYTES
  const sourceBytes = (peer.gate.sources.size + 2) * lineBytes
  const { maxPendingPerClient } = core.spec.limits
  if (peer.kind === 'client') return sourceBytes + (maxPendingPerClient + 2) * ERROR_LINE_BYTES
  const { sharing, limits } = peer.pool.spec
  const ownLines = peer.outstanding.size + peer.sessions.size + peer.bonds.size + maxPendingPerClient
  const waited = sharing === 'shared' ? limits.maxOutputQueueBytes + lineBytes : 40 * lineBytes
  return sourceBytes + waited + ownLines * ERROR_LINE_BYTES
}

function isClosed(core: Core, { owner }: Gate): boolean {
  if (owner === undefined) return true
  const isKnown = owner.kind === 'client' ? isThere(core, owner) : core.workers.get(owner.id) === owner
  return isKnown && !owner.outbox.isReleased
}

/**
 * Whatever waits, waits in one line, with its bytes: a line holds what its messages hold, a client is charged for all of its
 * own, and every request knows where it is. Nothing of a client that has gone waits anywhere, and nobody is stopped for a
 * line below half of what it may hold (contract 8.3).
 */
function inspectWaiting(core: Core): void {
  const heldBytes = new Map<Client, number>()
  for (const line of everyLine(core)) {
    const hasRoom = line.isEmpty || line.bytes * 2 < line.limitBytes
    demand(!line.isEmpty || line.clients.size === 0, 'tables tidy', 'somebody is counted where nothing waits')
    // Who is not listened to any more is stopped anyway.
    const isAnyStopped = [...line.gate.sources].some(({ isDeaf }) => !isDeaf)
    demand(!hasRoom || !isAnyStopped, 'goes on', 'somebody is stopped at a line that has room')
    if (line.isEmpty && line.bytes === 0) continue
    let bytes = 0
    const clients = new Map<Client, number>()
    for (const route of line.routes) {
      const { client, request } = route
      clients.set(client, (clients.get(client) ?? 0) + 1)
      bytes += route.bytes
      heldBytes.set(client, (heldBytes.get(client) ?? 0) + route.bytes)
      demand(isThere(core, client), 'tables tidy', () => `a message of client ${client.id} waits, and it has gone`)
      const isPlaced = route.place === line && (request === undefined || request.route === route)
      demand(isPlaced, 'tables tidy', () => `a message of client ${client.id} waits where its row does not say`)
      const isOpen = request === undefined || (!request.isSettled && request.worker === undefined)
      demand(isOpen, 'tables tidy', () => `a request of client ${client.id} waits and is answered or at a worker`)
      demand(route.bytes >= route.line.end - route.line.start, 'bounded', () => `a message waits with too few bytes`)
    }
    demand(line.bytes === bytes, 'bounded', () => `${bytes} bytes wait where ${line.bytes} are counted`)
    const isCounted =
      line.clients.size === clients.size && [...clients].every(([who, n]) => line.clients.get(who) === n)
    demand(isCounted, 'tables tidy', () => `${clients.size} clients wait where ${line.clients.size} are counted`)
  }
  for (const client of core.everyClient()) {
    const bytes = heldBytes.get(client) ?? 0
    demand(
      client.heldBytes === bytes,
      'bounded',
      () => `client ${client.id} has ${bytes} waiting, not ${client.heldBytes}`,
    )
  }
}

function* everyLine(core: Core): Generator<WaitingLine> {
  for (const pool of core.pools.values()) {
    yield pool.waiting
    yield pool.leases
  }
  for (const worker of core.workers.values()) {
    if (worker.pool.isRetired && worker.pool.workers[0] === worker) {
      yield worker.pool.waiting
      yield worker.pool.leases
    }
    yield worker.lobby
    for (const { held } of worker.bonds) if (held !== undefined) yield held
  }
}

/** What was held for sessions that are not announced counts as its worker's, within its bounds (contract 6.9). */
function inspectHeld({ held, heldBytes, id }: Worker): void {
  let bytes = 0
  for (const { line } of held) bytes += line.end - line.start
  const isCounted = heldBytes >= bytes && heldBytes <= bytes + held.length
  demand(isCounted, 'bounded', () => `worker ${id} holds ${bytes} bytes for sessions to come, and counts ${heldBytes}`)
  demand(held.length <= 256 && bytes <= 1_048_576, 'bounded', () => `worker ${id} holds ${held.length} lines`)
}

/** A number is used again only by a later generation (contract 3.3). */
function inspectGeneration(core: Core, worker: Worker): void {
  let generations = lastGenerations.get(core)
  if (generations === undefined) lastGenerations.set(core, (generations = new Map()))
  const last = generations.get(worker.id) ?? 0
  demand(worker.generation >= last, 'tables tidy', () => `worker ${worker.id}.${worker.generation} was ${last} before`)
  generations.set(worker.id, worker.generation)
}

/** A client's bonds and those of its workers are the same, and its home is one of them. */
function inspectBonds(core: Core, worker: Worker): void {
  for (const bond of worker.bonds) {
    const { client, introduction } = bond
    const isMutual =
      isThere(core, client) && introduction.bonds.get(worker) === bond && bond.generation <= worker.generation
    demand(
      isMutual,
      'tables tidy',
      () => `worker ${worker.id} has a bond with client ${client.id} that it does not share`,
    )
    const { home } = introduction
    const isHomeKnown = home === undefined || introduction.bonds.get(home.worker) === home
    demand(isHomeKnown, 'tables tidy', () => `the home of client ${client.id} is none of its workers`)
    demand(
      bond.held === undefined || !isGone(worker),
      'goes on',
      () => `client ${client.id} is held by a worker that ended`,
    )
  }
  demand(
    worker.lobby.isEmpty || !isGone(worker),
    'goes on',
    () => `somebody waits at worker ${worker.id}, which has ended`,
  )
}

function inspectPools(core: Core): void {
  for (const pool of core.pools.values()) {
    if (pool.waiting.isEmpty) continue
    for (const { client } of pool.waiting.routes)
      demand(
        isThere(core, client),
        'tables tidy',
        () => `pool ${pool.spec.id} keeps a message of a client that is gone`,
      )
    // One that has welcomed somebody may speak another version than those who wait.
    const isAnyPlain = [...pool.waiting.routes].some(({ dialect }) => dialect === undefined)
    const isFree = pool.workers.some(
      ({ isReady, holder, welcome }) => isReady && holder === undefined && (isAnyPlain || welcome === undefined),
    )
    demand(!isFree, 'goes on', () => `pool ${pool.spec.id} has a worker, and messages wait for one`)
  }
}
