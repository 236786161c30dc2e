/**
 * Bugs to be planted in a copy of the kernel, the gateway or the cluster, one at a time; each breaks one promise of the contract.
 *
 * Files are named as from the kernel; `find` stands exactly once in its file; `world` says where it is looked for. When the kernel changes and a line is gone,
 * plant the same bug in the new one.
 */
import { PLANTS_OF_CLUSTERS } from './plants-cluster.mjs'
import { PLANTS_OF_KEPT } from './plants-kept.mjs'
import { PLANTS_OF_LIVES } from './plants-lives.mjs'
import { PLANTS_OF_RIGHTS } from './plants-rights.mjs'
import { PLANTS_OF_WAYS } from './plants-ways.mjs'

const FIRST_PLANTS = [
  {
    name: 'an id that is taken is used again',
    file: 'owed.ts',
    find: 'worker.aliasesAll || worker.outstanding.has(clientKey) || line.isOdd(FIELD.id)',
    replace: 'worker.aliasesAll || line.isOdd(FIELD.id)',
  },
  {
    name: 'an odd id is not replaced',
    file: 'owed.ts',
    find: 'worker.outstanding.has(clientKey) || line.isOdd(FIELD.id)',
    replace: 'worker.outstanding.has(clientKey)',
  },
  {
    name: 'the id of a client that has gone is free at once',
    file: 'owed.ts',
    find: '    this.#addOwnerless(request, worker)\n    this.onDisowned(request)',
    replace: '    worker.outstanding.delete(request.key)\n    this.size--\n    this.onDisowned(request)',
  },
  {
    name: 'the own id does not come back',
    file: 'outbound.ts',
    find: 'return request.isAliased ? [replace(line, FIELD.id, request.idSpelling)] : []',
    replace: 'return []',
  },
  {
    name: 'a full queue stops nobody',
    file: 'flow.ts',
    find: 'if (source !== undefined) this.#hold(source, to.gate)',
    replace: '',
  },
  {
    name: 'a queue that has room again wakes nobody',
    file: 'flow.ts',
    find: '    peer.stuckMs = 0\n    this.release(peer.gate)',
    replace: '    peer.stuckMs = 0',
  },
  {
    name: 'a chunk is read again from its beginning',
    file: 'flow.ts',
    find: 'peer.backlogFrom = from',
    replace: 'peer.backlogFrom = 0',
  },
  {
    name: 'chunks that wait are taken last in, first out',
    file: 'flow.ts',
    find: 'const chunk = source.backlog.shift()!',
    replace: 'const chunk = source.backlog.pop()!',
  },
  {
    name: 'a line overtakes the run before it',
    file: '../wire/outbox.ts',
    find: '    this.settle()\n    this.#copy(bytes, start, end, isLent(bytes))',
    replace: '    this.#copy(bytes, start, end, isLent(bytes))',
  },
  {
    name: 'what was lent is read after it was given back',
    file: 'flow.ts',
    find: '    settleLentRuns()\n',
    replace: '',
  },
  {
    name: 'the rest of a chunk that waits is kept where it was lent',
    file: 'flow.ts',
    find: 'peer.backlog.push(rest)',
    replace: 'peer.backlog.push(chunk.subarray(from))',
  },
  {
    name: 'a block is used again while the system still reads it',
    file: '../wire/outbox.ts',
    find: 'if (pendingBytes > 0) return',
    replace: '',
  },
  {
    name: 'anybody may use any session',
    file: 'sessions.ts',
    find: 'if (!(known instanceof Set)) return known.driver !== client',
    replace: 'if (!(known instanceof Set)) return false',
  },
  {
    name: 'the session of a client that has gone stays at its worker',
    file: 'sessions.ts',
    find: 'if (sessions.get(session.idAtWorker) === session) sessions.delete(session.idAtWorker)',
    replace: '',
  },
  {
    name: 'a worker that ends takes its debts with it',
    file: 'departures.ts',
    find: 'if (request.client === undefined) core.owed.settle(request)',
    replace: 'if (request.client === undefined || request.isAliased) core.owed.settle(request)',
  },
  {
    name: 'a client that goes leaves questions behind',
    file: 'departures.ts',
    find: '    this.refuseQuestionsOf(client)\n    for (let request',
    replace: '    for (let request',
  },
  {
    name: 'the end of the bus forgets who waits for a worker',
    file: 'departures.ts',
    find: 'for (const pool of core.everyPool) assignment.dismiss(pool)',
    replace: '',
  },
  {
    name: 'the last in the waiting room is served first',
    file: 'assignment.ts',
    find: 'for (const route of waiting.take(line, isMeant)) router.proceed(route)',
    replace: 'for (const route of waiting.take(line, isMeant).reverse()) router.proceed(route)',
  },
  {
    name: 'messages of a client that has gone stay in the waiting room',
    file: 'assignment.ts',
    find: 'this.#board.waiting.forget(client, pool.waiting)',
    replace: '',
  },
  {
    name: 'the gate of the waiting room opens too early',
    file: 'waiting.ts',
    find: 'this.#relieved.add(line)',
    replace: 'this.#board.flow.release(line.gate)',
  },
  {
    name: 'a worker that belongs to somebody is given to others',
    file: 'pools.ts',
    find: 'isReady && holder === undefined && !isKept',
    replace: 'isReady && !isKept',
  },
  {
    name: 'last words are waited for without end',
    file: 'supervisor.ts',
    find: "if (worker.generation === generation && worker.state === 'dying') this.step(worker, 'broken')",
    replace: '',
  },
  {
    name: 'restarts are not counted',
    file: 'restarts.ts',
    find: 'this.#stampsMs.push(nowMs)',
    replace: '',
  },
  {
    name: 'workers end before the clients have their answers',
    file: 'bus.ts',
    find: "this.#core.phase === 'flushing' && this.#core.clients.size + this.#core.exchanges.size === 0",
    replace: "this.#core.phase === 'flushing'",
  },
  {
    name: 'a half-closed client is closed before its answers',
    file: 'bus.ts',
    find: "if (client.state !== 'half-closed' || client.pendingCount > 0) return",
    replace: "if (client.state !== 'half-closed') return",
  },
  {
    name: 'unanswered requests have no limit',
    file: 'inbound.ts',
    find: 'else if (client.pendingCount >= limit ||',
    replace: 'else if (client.pendingCount > limit ||',
  },
  {
    name: 'a log line goes to one of several clients',
    file: 'outbound.ts',
    find: 'if (sole !== undefined) return undefined',
    replace: 'if (sole !== undefined) return sole',
  },
  {
    name: 'an answer of a client keeps the id of the bus',
    file: 'router.ts',
    find: 'if (question.isAliased) edits.push(replace(line, FIELD.id, question.spelling))',
    replace: '',
  },
  {
    name: 'a cut member leaves its comma',
    file: '../wire/splice.ts',
    find: 'if (bytes[before] === COMMA) edits[at] = { ...edits[at]!, start: before }',
    replace: '',
  },
  {
    name: 'what was held for a session is lost when it is announced',
    file: 'announcements.ts',
    find: 'for (const { sessionId, line } of held) if (isOver || worker.sessions.has(sessionId)) deliver(line)',
    replace: '',
  },
  {
    name: 'a deadline that is due is forgotten',
    file: 'timers.ts',
    find: 'first.fire(nowMs)',
    replace: 'if (first.order % 4 !== 3) first.fire(nowMs)',
  },
  {
    name: 'a part of an answer gives back the id of a cancelled call',
    file: 'outbound.ts',
    find: 'const client = request?.client ?? request?.formerClient',
    replace: 'const client = request?.client',
  },
  {
    name: 'what the gateway adds makes a line too long',
    file: 'bus.ts',
    find: "event.door === 'internal' ? Number.POSITIVE_INFINITY : maxClientLineBytes",
    replace: 'maxClientLineBytes',
  },
  {
    name: 'an exchange that the bus refuses is closed without a word',
    file: 'switchboard.ts',
    find: 'if (client.isExchange) return this.failExchange(client, reason, problem === undefined ? undefined : { problem })',
    replace: '',
  },
  {
    name: 'a call with an odd id is answered under another',
    file: 'calls.ts',
    find: '...(isOdd ? { oddId: line.idSpelling() } : {}),',
    replace: '',
  },
  {
    name: 'calls of a caller that has gone go on',
    file: '../aio/gateway.ts',
    find: "for (const call of this.#open.of(caller)) call.abandon('caller_gone')",
    replace: '',
  },
  {
    name: 'a call that is over ends once more',
    file: '../aio/call.ts',
    find: '    if (!this.#isOpen) return\n    this.#isOpen = false\n',
    replace: '    this.#isOpen = false\n',
  },
]

export const PLANTS = [
  ...FIRST_PLANTS,
  ...PLANTS_OF_WAYS,
  ...PLANTS_OF_LIVES,
  ...PLANTS_OF_RIGHTS,
  ...PLANTS_OF_CLUSTERS,
  ...PLANTS_OF_KEPT,
]
