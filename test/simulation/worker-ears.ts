/**
 * Judges every line that a worker hears: it comes once, to one worker, unchanged but for an id that had to be another, in
 * the order its client sent it, and under an id that nothing else there has.
 */
import { hearAsAgent } from './call-ears.ts'
import { ClientLine, idIn, idKey, respell, serialIn } from './line.ts'
import { demandNewest, demandOwn } from './references.ts'
import type { SimWorker } from './sim-worker.ts'
import { demand } from './violation.ts'
import { demandRight } from './visit-ears.ts'

export function hearAsWorker(worker: SimWorker, text: string): void {
  if (worker.world.desk !== undefined && hearAsAgent(worker, text)) return
  const serial = serialIn(text)
  if (serial === -1) return hearBus(worker, text)
  const line = worker.world.lines[serial]
  demand(line instanceof ClientLine, 'nobody else sees it', () => `${worker} got what no client wrote: ${text}`)
  const isOther = line.method === 'initialize' && idKey(idIn(text)!) !== idKey(line.idRaw!)
  demandRight(worker, line, text)
  // The first worker may have died before it read it: then this is the second time for all we know.
  if (isOther) return hearRepeated(worker, line, text)
  demand(line.receiver === undefined, 'answered once', () => `${worker} got what ${line.receiver} has got: ${text}`)
  line.receiver = worker
  if (line.isStray) return
  demandPlace(worker, line, text)
  hearKind[line.kind](worker, line, text)
  demandOrder(worker, line, text)
}

const hearKind = {
  request: hearRequest,
  notification: hearNotification,
  response: hearAnswer,
  fault: (worker: SimWorker, _line: ClientLine, text: string) =>
    demand(false, 'nobody else sees it', `${worker} got what is no message: ${text}`),
} as const

/** The right pool, the right worker of it, and nobody else's. */
function demandPlace(worker: SimWorker, line: ClientLine, text: string): void {
  const { world, spec } = worker
  const client = line.author
  if (world.scenario.isMixed) return
  const isRight = world.mayServe(client.pool, worker.pool)
  demand(isRight, 'nobody else sees it', () => `${worker} of ${worker.pool} got ${text}`)
  if (spec.sharing === 'isolated') {
    worker.sole ??= client
    demand(worker.sole === client, 'nobody else sees it', () => `${worker} belongs to ${worker.sole} and got ${text}`)
  }
  // What it reads after it was told to end was written before.
  if (client.tongue !== 'plain' || worker.isStopping) return
  // Written before its client lost the pool, it may be read long after that.
  if (line.serial < client.sessionsFrom) return
  for (const name of line.sessions) {
    const key = `${client.id} ${name}`
    const known = world.homes.get(key) ?? worker
    // A worker that ended takes its sessions along; once that has been told, the name is new (contract 7.1).
    const home = known.isAlive && !known.isStopping ? known : worker
    world.homes.set(key, home)
    demand(
      home === worker,
      'order kept',
      () => `session ${name} of ${client} was at ${home}, then at ${worker}: ${text}`,
    )
  }
}

/** Where a worker is leased, requests wait by session or by worker, and notifications overtake them (contract 6.7). */
function demandOrder(worker: SimWorker, line: ClientLine, text: string): void {
  if (worker.world.scenario.isMixed) return
  const isLease = worker.spec.sharing === 'lease'
  if (isLease && (line.kind !== 'request' || line.sessions.length !== 1)) return
  // Where sessions are spread, a new one waits for the introduction at its worker and is overtaken by what is for another.
  if (worker.spec.balance === 'session' && (line.method === 'session/new' || line.method === 'session/fork')) return
  // After a reload a message for a new session may wait for a new worker while one with two sessions binds it to the old.
  if (worker.world.hasReloaded && line.sessions.length > 0) return
  // While the era of a worker is asked for, who waits for the answer is overtaken by who has a proven worker.
  if (worker.tongue === 'modern' && worker.spec.era === 'auto') return
  // Where sessions are spread, each is ordered in itself: what was meant for another worker may come here when that ended.
  const isSpread = isLease || worker.spec.balance === 'session'
  // Where one pool may serve in the place of another, what names another session, or none, may wait for either of them.
  const mayMove = worker.world.hasFallback(line.author.pool)
  // There a message that names two sessions leads the one to the worker of the other, and what names only one may come later.
  if (mayMove && line.sessions.length === 2) for (const name of line.sessions) line.author.coupled.add(name)
  if (mayMove && line.sessions.some((name) => line.author.coupled.has(name))) return
  const isBySession = isSpread || mayMove
  const key = `${line.author.id} ${isBySession ? line.sessions[0] : ''}`
  const last = worker.lastHeard.get(key) ?? -1
  demand(line.serial > last, 'order kept', () => `${worker} got ${last} of ${line.author} before ${text}`)
  worker.lastHeard.set(key, line.serial)
}

const NOTHING: ReadonlySet<string> = new Set()
const CUTS = {
  plain: NOTHING,
  acp: new Set(['pool']),
  legacy: new Set(['pool', 'sessionId', 'trace_id']),
  modern: new Set(['pool', 'sessionId', 'trace_id']),
} as const

/** Every byte as it was, but for the id, the inner reference, and what its protocol does not know (contract 4.2.3). */
function expect(
  worker: SimWorker,
  line: ClientLine,
  text: string,
  idRaw: string | undefined,
  innerRaw: string | undefined,
): void {
  const { isMixed } = worker.world.scenario
  const expected = line.render(idRaw, innerRaw, CUTS[worker.tongue])
  if (text === expected) return
  const isOther = isMixed && Object.values(CUTS).some((cuts) => text === line.render(idRaw, innerRaw, cuts))
  demand(isOther, 'bytes unchanged', () => `${worker} should have got\n    ${expected}\n  but got\n    ${text}`)
}

function innerIn(text: string): string | undefined {
  return /"(?:progressToken|requestId)": ?("(?:[^"\\]|\\.)*"|[^,}\s]+)/.exec(text)?.[1]
}

function isOdd(raw: string): boolean {
  return raw.charCodeAt(0) === 0x22 ? /\\ud800/.test(raw) : !/^-?\d{1,15}$/.test(raw)
}

function hearRequest(worker: SimWorker, line: ClientLine, text: string): void {
  const idRaw = idIn(text)!
  const key = idKey(idRaw)
  const ownKey = idKey(line.idRaw!)
  line.isAliased = key !== ownKey
  demandId(worker, line, key, ownKey, text)
  const innerRaw = line.innerRaw === undefined ? undefined : innerIn(text)!
  if (innerRaw !== undefined) line.isInnerAliased = idKey(innerRaw) !== idKey(line.innerRaw!)
  expect(worker, line, text, line.isAliased ? idRaw : line.idRaw, line.isInnerAliased ? innerRaw : line.innerRaw)
  demandLease(worker, line, text)
  demandOwn(worker, line, text)
  for (const name of line.sessions) worker.noteUser(name, line.author)
  line.tokenRaw = innerRaw === undefined ? undefined : respell(innerRaw)
  line.workerIdRaw = respell(idRaw)
  worker.usedIds.add(key)
  const isNew = line.method === 'session/new' || line.method === 'session/fork'
  const announces = isNew ? { announces: worker.makeSession() } : {}
  if (line.method === 'session/prompt') for (const name of line.sessions) worker.prompted.add(name)
  const { workerIdRaw, method } = line
  worker.open.set(idKey(workerIdRaw), { idRaw: workerIdRaw, method, line, ...announces, ...versionIn(worker, text) })
}

/** An id is changed only where it must be, and what it is changed to is new (contract 4.2.3). */
function demandId(worker: SimWorker, line: ClientLine, key: string, ownKey: string, text: string): void {
  const isFree = (!worker.open.has(key) && !worker.unansweredIds.has(key)) || worker.vagueIds.has(key)
  demand(isFree, 'answered once', () => `${worker} got an id that is taken there: ${text}`)
  if (!line.isAliased) {
    return demand(!isOdd(line.idRaw!), 'bytes unchanged', () => `${worker} got an odd id: ${text}`)
  }
  const mayBeTaken = isOdd(line.idRaw!) || worker.usedIds.has(ownKey)
  demand(mayBeTaken, 'bytes unchanged', () => `${worker} got another id for ${line.idRaw} without need: ${text}`)
  demand(
    !worker.world.aliases.has(key),
    'answered once',
    () => `${worker} got a bus-made id that was used before: ${text}`,
  )
  worker.world.aliases.add(key)
}

/** Contract 6.7: a leased worker is one client's while it has requests in flight. */
function demandLease(worker: SimWorker, line: ClientLine, text: string): void {
  const { spec } = worker
  if (spec.sharing !== 'lease' || worker.vagueIds.size > 0) return
  // What has timed out holds no lease, whichever edition of the pool it came under.
  if (worker.world.poolsFor(line).some(({ limits }) => limits.requestTimeoutMs > 0)) return
  for (const { line: other } of worker.open.values()) {
    if (other === undefined || other.author === line.author || !other.author.isListening || other.isCancelled) continue
    demand(
      other.author.isDeafened,
      'nobody else sees it',
      () => `${worker} is leased to ${other.author} and got ${text}`,
    )
  }
}

function hearNotification(worker: SimWorker, line: ClientLine, text: string): void {
  if (line.innerRaw === undefined) return expect(worker, line, text, undefined, undefined)
  const innerRaw = innerIn(text)!
  expect(worker, line, text, undefined, idKey(innerRaw) === idKey(line.innerRaw) ? line.innerRaw : innerRaw)
  const received = worker.open.get(idKey(respell(innerRaw)))
  // A plain worker gets every byte as it was: what a cancel means there is nobody's promise.
  if (received === undefined || worker.world.scenario.isMixed) return
  const isOwn = received.line?.author === line.author || worker.vagueIds.has(idKey(innerRaw))
  demand(isOwn, 'nobody else sees it', () => `${line.author} cancels a request of ${received.line?.author}: ${text}`)
  demandNewest(worker, received, line, text)
  worker.cancelled(received)
}

function hearAnswer(worker: SimWorker, line: ClientLine, text: string): void {
  if (line.isVague) return settleQuestion(worker, respell(idIn(text)!), text)
  const question = line.answers
  demand(question !== undefined, 'nobody else sees it', () => `${worker} got an answer to nothing: ${text}`)
  demand(
    question.author === worker,
    'nobody else sees it',
    () => `${worker} got the answer for ${question.author}: ${text}`,
  )
  expect(worker, line, text, question.isAliased ? question.idRaw : line.idRaw, undefined)
  settleQuestion(worker, respell(question.idRaw!), text)
}

function settleQuestion(worker: SimWorker, key: string, text: string): void {
  demand(
    worker.questions.delete(key),
    'questions answered',
    () => `${worker} got an answer that it is not owed: ${text}`,
  )
}

/** Contract 6.6: after a restart the bus repeats a client's `initialize`, once for each worker, under an id of its own. */
function hearRepeated(worker: SimWorker, line: ClientLine, text: string): void {
  demand(line.receiver !== worker && !worker.repeated.has(line), 'answered once', () => `${worker} got twice ${text}`)
  worker.repeated.add(line)
  const idRaw = idIn(text)!
  demand(!worker.open.has(idKey(idRaw)), 'answered once', () => `${worker} got an id that is taken there: ${text}`)
  // It may also be the first time, with an id that was taken: then the answer is the client's, as a welcome is.
  const isAwaited = !line.isAnswered
  worker.open.set(idKey(idRaw), { idRaw, method: 'initialize', line: undefined, isAwaited, ...versionIn(worker, text) })
}

/** Whoever has welcomed somebody in a version with one handshake gets no other (contract 6.6). */
function versionIn(worker: SimWorker, text: string): { version?: number } {
  const version = /"protocolVersion":(\d)/.exec(text)?.[1]
  if (version === undefined) return {}
  const isOnce = worker.version !== undefined && worker.version > 1 && worker.spec.sharing !== 'isolated'
  demand(!isOnce, 'answered once', () => `${worker} takes one handshake and got another: ${text}`)
  return { version: Number(version) }
}

// ---- from the bus ----

interface BusLine {
  readonly id?: string | number
  readonly method?: string
  readonly params?: { readonly requestId?: string | number; readonly sessionId?: string }
}

const OWN_REQUESTS: ReadonlySet<string> = new Set([
  'initialize',
  'server/discover',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'session/close',
])
const OWN_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
  '$/cancel_request',
  'session/cancel',
])

function hearBus(worker: SimWorker, text: string): void {
  const message = JSON.parse(text) as BusLine
  const { id, method } = message
  const sessionId = message.params?.sessionId ?? ''
  if (method === 'session/close') worker.closedByBus.add(sessionId)
  if (method === 'session/cancel') worker.cancelledByBus.add(sessionId)
  if (method === undefined) return settleQuestion(worker, JSON.stringify(id), text)
  const isSpoken = worker.tongue !== 'plain' || worker.world.scenario.isMixed
  demand(isSpoken, 'bytes unchanged', () => `${worker} is plain and got ${text}`)
  if (id !== undefined) return hearBusRequest(worker, JSON.stringify(id), method, text)
  demand(OWN_NOTIFICATIONS.has(method), 'justified', () => `${worker} got ${text}`)
  const { requestId } = message.params ?? {}
  if (requestId === undefined) return
  const received = worker.open.get(idKey(JSON.stringify(requestId)))
  if (received !== undefined) worker.cancelled(received)
}

function hearBusRequest(worker: SimWorker, idRaw: string, method: string, text: string): void {
  demand(OWN_REQUESTS.has(method), 'justified', () => `${worker} got ${text}`)
  const key = idKey(idRaw)
  demand(
    !worker.open.has(key) && !worker.world.aliases.has(key),
    'answered once',
    () => `${worker} got a used id: ${text}`,
  )
  worker.world.aliases.add(key)
  // The gateway counts from one, as clients do: where it asks, their ids may have to be others.
  if (worker.world.desk !== undefined && !/^"?b?1\d{9}/.test(idRaw)) worker.usedIds.add(key)
  worker.open.set(key, { idRaw, method, line: undefined })
}
