/**
 * Judges every line that a client hears: it must be the client's own, unchanged but for its id, in order, and owed.
 *
 * Lines of workers are recognised by their serial number; what has none was made by the bus and must be an answer that the
 * client is owed, for a reason that holds.
 */
import { FAULTS, type Reason } from '../../src/kernel/faults.ts'
import { hearAsCaller, isKnownFault } from './call-ears.ts'
import { type Detail, isJustified } from './causes.ts'
import { type ClientLine, idIn, idKey, messagesIn, serialIn, WorkerLine } from './line.ts'
import { demandRevision } from './references.ts'
import type { SimClient } from './sim-client.ts'
import { demand } from './violation.ts'
import { demandDiscreet, demandGreeting, demandIn, isTurnedAway, listsFor } from './visit-ears.ts'

/** A line, or several in one array, which only a client that knows arrays is sent (contract 4.3). */
export function hear(client: SimClient, text: string): void {
  const isAllowed = !text.startsWith('[') || client.hasBatches || client.world.scenario.isMixed
  demand(isAllowed, 'bytes unchanged', () => `${client} knows no arrays and got ${text}`)
  for (const message of messagesIn(text)) hearOne(client, message)
}

function hearOne(client: SimClient, text: string): void {
  demand(!client.hasLeft, 'actions sensible', () => `${client} has left`)
  if (client.world.desk !== undefined && hearAsCaller(client, text)) return
  const serial = serialIn(text)
  if (serial === -1) return hearBus(client, text)
  const line = client.world.lines[serial]
  demand(line instanceof WorkerLine, 'nobody else sees it', () => `${client} got what no worker wrote: ${text}`)
  if (client.visit !== undefined) demandIn(client, line, text)
  if (line.method === 'initialize' && !isOwnAnswer(client, line, text)) return hearWelcome(client, line, text)
  // A lie may be taken for a welcome, which later clients are told too.
  if (line.method === 'lie') return hearAnswer(client, line, text)
  demandVersion(client, line, text)
  demand(!line.receivers.includes(client), 'answered once', () => `${client} got a line twice: ${text}`)
  if (line.to !== 'everyone' && line.to !== 'subscribers')
    demand(line.receivers.length === 0, 'nobody else sees it', () => `${client} got what another has got: ${text}`)
  line.receivers.push(client)
  hearKind[line.kind](client, line, text)
  // Held until its session was announced or its array is whole, or handed over with its session.
  if (
    line.isEarly ||
    (client.hasBatches && line.kind === 'response') ||
    (typeof line.to === 'object' && line.to !== client)
  )
    return
  const last = client.lastHeard.get(line.author) ?? -1
  demand(line.serial > last, 'order kept', () => `${client} got ${last} of ${line.author} before ${text}`)
  client.lastHeard.set(line.author, line.serial)
}

const hearKind = {
  request: hearQuestion,
  notification: hearNotification,
  response: hearAnswer,
  fault: (client: SimClient, _line: WorkerLine, text: string) =>
    demand(false, 'nobody else sees it', `${client} got what is no message: ${text}`),
} as const

// ---- from workers ----

function hearAnswer(client: SimClient, line: WorkerLine, text: string): void {
  if (line.isVague) return void client.settleId(idKey(idIn(text)!), text)
  const request = line.answers
  demand(request !== undefined, 'nobody else sees it', () => `${client} got an answer to the bus: ${text}`)
  demand(
    request.author === client,
    'nobody else sees it',
    () => `${client} got the answer of ${request.author}: ${text}`,
  )
  if (line.tools !== undefined) hearTools(client, request, line, text)
  else if (line.method !== 'session/list') {
    const idRaw = request.isAliased ? request.idRaw : line.idRaw
    expect(client, text, line.render(idRaw, request.isAliased ? request.idRaw : line.innerRaw))
  } else hearList(client, request, line, text)
  client.settleRequest(request)
  if (line.announces !== undefined) client.learnSession(line.announces, line)
  if (line.method === 'initialize') noteRevision(client, text)
  if (line.about !== undefined) client.tasks.push(line.about)
}

/** A list of tools has those that its reader may use, and no others. */
function hearTools(client: SimClient, request: ClientLine, line: WorkerLine, text: string): void {
  const lists = listsFor(client, request, line, request.isAliased ? request.idRaw : line.idRaw)
  demand(lists.includes(text), 'rights kept', () => `${client} should have got ${lists} but got ${text}`)
}

/** A list of sessions may be shorter, never longer, and shows nothing of others. */
function hearList(client: SimClient, request: ClientLine, line: WorkerLine, text: string): void {
  const idRaw = request.isAliased ? request.idRaw! : line.idRaw!
  demand(idKey(idIn(text)!) === idKey(idRaw), 'bytes unchanged', () => `${client} got another id: ${text}`)
  const heard = JSON.parse(text) as { result?: { sessions?: { sessionId: string }[] } }
  const written = JSON.parse(line.text) as typeof heard
  if (line.author.temper === 'lying') return
  const all = written.result?.sessions?.map(({ sessionId }) => sessionId) ?? []
  // A load or resume that has timed out makes the session nobody's, whatever the worker says to it later.
  const mayTimeOut = client.world.poolsFor(request).some(({ limits }) => limits.requestTimeoutMs > 0)
  for (const { sessionId } of heard.result?.sessions ?? []) {
    demand(all.includes(sessionId), 'bytes unchanged', () => `a session that the worker did not list: ${text}`)
    const owner = line.author.ownerOf(sessionId)
    const isLive = owner?.isListening === true && owner.sessions.includes(sessionId)
    const isTheirs = isLive && owner !== client && !(mayTimeOut && owner.claimed.has(sessionId))
    demand(
      !isTheirs || client.claimed.has(sessionId) || line.author.isCommon(sessionId, client),
      'nobody else sees it',
      () => `${client} sees a session of ${owner}: ${text}`,
    )
  }
}

function hearNotification(client: SimClient, line: WorkerLine, text: string): void {
  if (line.isVague) return
  demandEntitled(client, line, text)
  const refersTo = line.refersTo
  const isOther =
    refersTo !== undefined && (line.method === 'notifications/progress' ? refersTo.isInnerAliased : refersTo.isAliased)
  const raw = line.method === 'notifications/progress' ? refersTo?.innerRaw : refersTo?.idRaw
  expect(client, text, line.render(undefined, isOther ? raw : line.innerRaw))
}

function hearQuestion(client: SimClient, line: WorkerLine, text: string): void {
  if (!line.isVague) demandEntitled(client, line, text)
  const idRaw = idIn(text)!
  demand(!client.asked.has(idRaw), 'questions answered', () => `${client} is asked twice with the id ${idRaw}: ${text}`)
  line.isAliased = idKey(idRaw) !== idKey(line.idRaw!)
  expect(client, text, line.render(idRaw, line.innerRaw))
  client.asked.set(idRaw, { idRaw, line })
}

/** So long the bus takes it that a worker may still talk about what it was told to give up. */
const STRAY_MS = 5_000

function demandEntitled(client: SimClient, line: WorkerLine, text: string): void {
  if (line.during !== undefined && client.world.nowMs >= line.during.sentAtMs + STRAY_MS) return
  const isMine = entitled[typeof line.to === 'string' ? line.to : 'one'](client, line)
  demand(isMine, 'nobody else sees it', () => `${client} got what is for ${line.to}: ${text}`)
}

/** The session may have become this client's, or may be several clients' by the same name. */
function mayHave(client: SimClient, { to, author }: WorkerLine, session: string): boolean {
  if (client.claimed.has(session) || author.isCommon(session, client)) return true
  // When its owner has gone, a name is as good as new.
  return typeof to === 'object' && !to.isListening && client.world.contested.has(session)
}

const entitled = {
  one: (client: SimClient, line: WorkerLine) =>
    line.to === client ||
    (line.to === undefined && client.world.scenario.isMixed) ||
    (line.session !== undefined && mayHave(client, line, line.session)),
  everyone: (client: SimClient, line: WorkerLine) =>
    client.world.mayServe(client.pool, line.author.pool) || client.world.scenario.isMixed,
  // Who has the worker for itself hears whatever it says of its resources.
  subscribers: (client: SimClient, line: WorkerLine) =>
    client.subscribed.has(line.about!) || line.author.spec.sharing !== 'shared' || client.world.scenario.isMixed,
  bus: () => false,
} as const

function expect(client: SimClient, text: string, expected: string): void {
  demand(
    text === expected,
    'bytes unchanged',
    () => `${client} should have got\n    ${expected}\n  but got\n    ${text}`,
  )
}

// ---- from the bus ----

interface BusLine {
  readonly jsonrpc: string
  readonly id: unknown
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly data: { readonly reason: Reason } & Detail }
}

/** What the bus answers in its own name. */
const LOCAL: ReadonlySet<string> = new Set([
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'bus::open',
  'bus::whoami',
])

/** What is said to a credential; it closes the connection, but is an answer like any other. */
const SHOWN: ReadonlySet<string> = new Set(['unauthenticated', 'too_many_clients'])

function hearBus(client: SimClient, text: string): void {
  const message = JSON.parse(text) as BusLine
  demand(message.jsonrpc === '2.0', 'bytes unchanged', () => `${client} got ${text}`)
  const idRaw = idIn(text)!
  if (message.error === undefined) {
    const line = client.settleId(idKey(idRaw), text)
    if (line !== undefined && client.visit !== undefined) demandGreeting(client, line, message.result)
    const isLocal = line === undefined || LOCAL.has(line.method) || line.isCall
    return demand(isLocal, 'justified', () => `${client} got an answer of the bus to ${line?.text}`)
  }
  const { reason } = message.error.data
  const isKnown = isKnownFault(reason, message.error.code)
  demand(isKnown, 'justified', () => `${client} got an unknown error: ${text}`)
  client.world.countReason(reason)
  if (client.visit !== undefined && isTurnedAway(client, reason, message.id)) return
  const isOwed = client.visit !== undefined && message.id !== null && SHOWN.has(reason)
  if (!isOwed && isClosing(client, reason, message.id)) return
  const line = client.settleId(idKey(idRaw), text)
  if (line !== undefined) line.refusedFor = reason
  const { pools } = message.error.data
  if (line !== undefined && pools !== undefined && client.visit !== undefined) demandDiscreet(client, line, pools, text)
  if (line !== undefined && line === client.introduction) reintroduce(client)
  const isTrue = line === undefined || isJustified(client, reason, line, message.error.data)
  demand(isTrue, 'justified', () => `${client} got ${reason} for ${line?.text}: ${text}`)
}

function reintroduce(client: SimClient): void {
  client.hasInitialised = false
  client.patience = client.answers - client.callAnswers + 1
}

/** The last words of the bus to a client that it closes. */
function isClosing(client: SimClient, reason: Reason, id: unknown): boolean {
  const isRefusal = id === null && (reason === 'too_many_clients' || reason === 'shutting_down')
  const isBadOpening = reason === 'unknown_pool' && client.isBadlyOpened
  if (!('closes' in (FAULTS[reason] ?? {})) && !isRefusal && !isBadOpening) return false
  demand(isRefusal || client.isDeafened, 'justified', () => `${client} is closed for ${reason} without a fault`)
  demand(!client.isRefused, 'answered once', () => `${client} is told twice that it is closed`)
  client.isRefused = true
  return true
}

/** It is the answer to this very request, and not what later ones are told of it. */
function isOwnAnswer(client: SimClient, { answers }: WorkerLine, text: string): boolean {
  return answers?.author === client && !answers.isAnswered && idKey(idIn(text)!) === idKey(answers.idRaw!)
}

/** The worker's answer to the handshake of the bus or of another client, under the client's own id. */
function hearWelcome(client: SimClient, said: WorkerLine, text: string): void {
  const line = client.settleId(idKey(idIn(text)!), text)
  const isWelcome = line === undefined || line.method === 'initialize'
  demand(isWelcome, 'justified', () => `${client} got a welcome for ${line?.text}`)
  demandRevision(client, line, said, text)
  const isFrom = client.world.mayServe(client.pool, said.author.pool) || client.world.scenario.isMixed
  demand(isFrom, 'nobody else sees it', () => `${client} got a welcome of ${said.author}: ${text}`)
  noteRevision(client, text)
  const isWanted = client.version === undefined || client.version <= client.wantedVersion
  demand(isWanted, 'bytes unchanged', () => `${client} is welcomed in a version that it did not ask for: ${text}`)
}

function noteRevision(client: SimClient, text: string): void {
  client.version = versionIn(text)
  client.hasBatches = client.tongue === 'legacy' && text.includes('"protocolVersion":"2025-03-26"')
}

function versionIn(text: string): number | undefined {
  const version = /"protocolVersion":(\d)\b/.exec(text)?.[1]
  return version === undefined ? undefined : Number(version)
}

/** No client hears what an agent says that was welcomed in another version (contract 6.6). */
function demandVersion(client: SimClient, { author, method }: WorkerLine, text: string): void {
  if (client.version === undefined || author.version === undefined || method === 'initialize') return
  demand(
    client.version === author.version || client.world.scenario.isMixed,
    'nobody else sees it',
    () => `${client} speaks version ${client.version} and got what ${author} says in ${author.version}: ${text}`,
  )
}
