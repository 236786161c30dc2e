/**
 * What simulated workers say: answers in their protocol, updates, progress, logs and questions while they work, and, as
 * their temper has it, lies and junk.
 */
import { answerCall, callOn, modulesOf, serve } from './call-speech.ts'
import { type ClientLine, type Draft, INNER, idKey, type Member, respell } from './line.ts'
import { revisionOf } from './references.ts'
import type { TongueName } from './scenario.ts'
import type { Received, Remarks, SimWorker } from './sim-worker.ts'
import { drawTools } from './visit-speech.ts'

type Talk = (worker: SimWorker, received: Received) => void

export function work(worker: SimWorker): void {
  const { chance } = worker.world
  const roll = chance.next()
  if (worker.temper === 'lying' && roll < 0.1) return lie(worker)
  if (worker.temper === 'junk' && roll < 0.1) return babble(worker)
  const { aio } = worker.world.scenario
  if (aio !== undefined && chance.is(aio.workerShare / 10)) return callOn(worker, undefined)
  if (worker.open.size === 0) return
  const received = chance.pick([...worker.open.values()])
  if (received.call !== undefined) return serve(worker, received)
  const isTalkative = worker.temper === 'chatty' ? 0.6 : 0.15
  if (chance.is(isTalkative)) chance.weigh<Talk>(TALK[worker.tongue])(worker, received)
  if (worker.withholds(received)) return
  if (chance.is(worker.temper === 'slow' ? 0.1 : 0.7)) answer(worker, received)
}

export function finishWork(worker: SimWorker): void {
  for (const received of [...worker.open.values()]) {
    if (worker.withholds(received)) continue
    if (received.call !== undefined) answerCall(worker, received)
    else answer(worker, received)
  }
}

// ---- answers ----

type Body = (worker: SimWorker, received: Received) => string | { readonly error: string }

const BODIES: Readonly<Record<TongueName, Readonly<Record<string, Body>>>> = {
  plain: {},
  acp: {
    initialize: welcomeAcp,
    'session/new': (_worker, { announces }) => `,"sessionId":"${announces}"`,
    'session/fork': (_worker, { announces }) => `,"sessionId":"${announces}"`,
    'session/list': (worker) => `,"sessions":[${[...worker.owners.keys()].map((name) => `{"sessionId":"${name}"}`)}]`,
  },
  legacy: {
    initialize: (worker) => `,"protocolVersion":"${revisionOf(worker)}","capabilities":${modulesOf(worker)}`,
    'server/discover': () => ({ error: '-32601' }),
  },
  modern: {
    initialize: () => ({ error: '-32601' }),
    'server/discover': (worker) => `,"supportedVersions":["2026-07-28"]${modernModulesOf(worker)}`,
  },
}

/** Version 2 has one handshake for each process; some agents of version 1 have no more either. */
function welcomeAcp(worker: SimWorker, { version = 1 }: Received): ReturnType<Body> {
  const { customs } = worker.world.scenario
  if (worker.version !== undefined && (worker.version > 1 || customs.refusesSecond)) return { error: '-32600' }
  worker.version = Math.min(version, customs.versions.get(worker.pool) ?? 1)
  if (worker.version > 1) return `,"protocolVersion":${worker.version},"capabilities":{}`
  return ',"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{}}}'
}

function modernModulesOf(worker: SimWorker): string {
  return worker.world.desk === undefined ? '' : `,"capabilities":${modulesOf(worker)}`
}

function answer(worker: SimWorker, received: Received): void {
  const { chance, lines } = worker.world
  const { idRaw, method, line, announces } = received
  const key = idKey(idRaw)
  worker.open.delete(key)
  const serial = lines.length
  const body = BODIES[worker.tongue][method]?.(worker, received) ?? (chance.is(0.9) ? '' : { error: '1' })
  const taskId = worker.tongue !== 'acp' && method === 'tools/call' && chance.is(0.1) ? `task${serial}` : undefined
  const extra = taskId === undefined ? '' : `,"task":{"taskId":"${taskId}"}`
  const isError = typeof body !== 'string'
  const tools = isError || method !== 'tools/list' ? undefined : listTools(worker, line)
  const listed = tools === undefined ? '' : `,"tools":[${INNER}],"cacheScope":"public"`
  const outcome: Member = isError
    ? ['error', `{"code":${body.error},"message":"no","data":{"#":${serial}}}`]
    : ['result', `{"#":${serial}${body}${extra}${listed}${drawPad(worker)}}`]
  const members: Member[] = [['jsonrpc', '"2.0"'], ['id', ''], outcome]
  if (chance.is(0.2)) members.reverse()
  const innerRaw = tools?.map(({ raw }) => raw).join(',')
  worker.say(
    { kind: 'response', method, idRaw, innerRaw, members },
    {
      tools,
      to: line?.author ?? 'bus',
      answers: line,
      announces: isError ? undefined : announces,
      about: isError ? undefined : taskId,
      isVague: worker.vagueIds.has(key),
    },
  )
  if (line === undefined || isError) return
  if (announces !== undefined) worker.noteOwner(announces, line.author)
  if (line.about !== undefined && method.startsWith('session/')) worker.noteOwner(line.about, line.author)
  if (method === 'session/close') worker.noteOwner(line.sessions[0]!, undefined)
}

/** Where callers are told apart servers list what they have, or, now and then, nothing that is a list. */
function listTools({ world }: SimWorker, line: ClientLine | undefined): ReturnType<typeof drawTools> | undefined {
  if (world.gatehouse === undefined || line === undefined) return undefined
  line.isListless = world.chance.is(0.1)
  return line.isListless ? undefined : drawTools(world.chance)
}

export function drawPad(worker: SimWorker): string {
  const { chance } = worker.world
  const roll = chance.next()
  if (roll < 0.7) return ''
  return `,"pad":"${'y'.repeat(roll < 0.99 ? chance.int(400) : chance.int(4_500))}"`
}

// ---- talk ----

interface About {
  readonly isQuestion?: boolean
  readonly params?: string
  readonly sessionId?: string
  readonly inner?: string
}

function draft(worker: SimWorker, method: string, about: About): Draft {
  const serial = worker.world.lines.length
  const idRaw = about.isQuestion ? drawQuestionId(worker) : undefined
  const members: Member[] = [['jsonrpc', '"2.0"']]
  if (idRaw !== undefined) members.push(['id', ''])
  members.push(['method', JSON.stringify(method)])
  if (about.sessionId !== undefined) members.push(['sessionId', JSON.stringify(about.sessionId)])
  members.push(['params', `{"#":${serial}${about.params ?? ''}${drawPad(worker)}}`])
  return { kind: idRaw === undefined ? 'notification' : 'request', method, idRaw, innerRaw: about.inner, members }
}

/** Small numbers, so that the questions of different workers collide at a client. */
export function drawQuestionId(worker: SimWorker): string {
  const { chance, lines } = worker.world
  const idRaw = chance.is(0.9) ? String(chance.between(1, 9)) : `${chance.between(1, 9)}.0`
  if (!worker.questions.has(respell(idRaw))) return idRaw
  const fresh = String(lines.length)
  return worker.questions.has(fresh) ? `"q${fresh}"` : fresh
}

function ask(worker: SimWorker, method: string, about: About, of: Remarks): void {
  const line = worker.say(draft(worker, method, { ...about, isQuestion: true }), of)
  worker.questions.set(respell(line.idRaw!), line)
}

function updateSession(worker: SimWorker, { line }: Received): void {
  const { chance } = worker.world
  const name = line?.sessions[0]
  if (line === undefined || name === undefined) return talkToNobody(worker)
  // Where tongues are mixed the session may mean nothing to the bus.
  const during = worker.world.scenario.isMixed ? line : undefined
  const of = { to: line.author, session: name, during, isEarly: during !== undefined }
  const about = chance.is(0.5) ? { sessionId: name } : { params: `,"sessionId":${JSON.stringify(name)}` }
  if (chance.is(0.7)) worker.say(draft(worker, 'update', about), of)
  else ask(worker, 'question', about, of)
}

/** Nobody is meant; but where tongues are mixed the bus may take somebody for the only one who can be. */
function talkToNobody(worker: SimWorker): void {
  const { chance, scenario } = worker.world
  const about = chance.is(0.5) ? {} : { sessionId: 'unheard-of' }
  const of = { isVague: scenario.isMixed }
  if (chance.is(0.5)) worker.say(draft(worker, 'update', about), of)
  else ask(worker, 'question', about, of)
}

/** Updates for a session that is not announced yet, or is over, may be held; those for a known one come in their order. */
function updateAcp(worker: SimWorker, { line, announces }: Received): void {
  const { chance } = worker.world
  const name = announces ?? line?.sessions[0]
  if (line === undefined || name === undefined) return
  const params = `,"sessionId":${JSON.stringify(name)}`
  const isClaimed = worker.world.clients.some((client) => client.claimed.has(name))
  const isKnown = announces === undefined && worker.owners.has(name) && worker.temper !== 'lying' && !isClaimed
  const during = worker.world.scenario.isMixed ? line : undefined
  const of = { to: line.author, session: name, during, isEarly: !isKnown }
  if (chance.is(0.7)) worker.say(draft(worker, 'session/update', { params }), of)
  else ask(worker, chance.pick(['session/request_permission', 'fs/read_text_file']), { params }, of)
}

function talkUnaddressed(method: string, isQuestion: boolean): Talk {
  return (worker, { line }) => {
    if (line === undefined || (worker.tongue === 'modern' && !line.text.includes('/logLevel'))) return
    const of = { to: line.author, during: line, isVague: worker.vagueIds.size > 0 }
    if (isQuestion) ask(worker, method, {}, of)
    else worker.say(draft(worker, method, { params: ',"level":"info"' }), of)
  }
}

function progress(worker: SimWorker, { line }: Received): void {
  if (line?.tokenRaw === undefined) return
  const params = `,"progressToken":${INNER},"progress":1`
  const of = { to: line.author, refersTo: line, isVague: worker.vagueIds.size > 0 }
  worker.say(draft(worker, 'notifications/progress', { params, inner: line.tokenRaw }), of)
}

function tellEveryone(worker: SimWorker): void {
  worker.say(draft(worker, 'notifications/tools/list_changed', {}), { to: 'everyone' })
}

function updateResource(worker: SimWorker): void {
  const uri = `file:///${worker.world.chance.int(3)}`
  worker.say(draft(worker, 'notifications/resources/updated', { params: `,"uri":"${uri}"` }), {
    to: 'subscribers',
    about: uri,
  })
}

function updateSubscription(worker: SimWorker, { line, idRaw, method }: Received): void {
  if (line === undefined || method !== 'subscriptions/listen') return
  const params = `,"_meta":{"io.modelcontextprotocol/subscriptionId":${INNER}}`
  const of = { to: line.author, refersTo: line, isVague: worker.vagueIds.size > 0 }
  worker.say(draft(worker, 'notifications/resources/updated', { params, inner: idRaw }), of)
}

const TALK: Readonly<Record<TongueName, readonly (readonly [number, Talk])[]>> = {
  plain: [
    [8, updateSession],
    [1, talkToNobody],
  ],
  acp: [
    [8, updateAcp],
    [1, talkUnaddressed('_x/notice', false)],
    [1, talkUnaddressed('_x/question', true)],
  ],
  legacy: [
    [4, progress],
    [2, talkUnaddressed('notifications/message', false)],
    [2, talkUnaddressed('sampling/createMessage', true)],
    [1, tellEveryone],
    [1, updateResource],
    [1, (worker) => ask(worker, 'ping', {}, {})],
  ],
  modern: [
    [4, progress],
    [2, talkUnaddressed('notifications/message', false)],
    [2, updateSubscription],
  ],
}

// ---- lies and junk ----

function lie(worker: SimWorker): void {
  const { chance, lines } = worker.world
  const used = [...worker.usedIds]
  const idRaw = used.length > 0 && chance.is(0.6) ? chance.pick(used) : `"made-up-${chance.int(9)}"`
  const isReal = worker.open.delete(idRaw)
  if (!isReal) worker.vagueIds.add(idRaw)
  const members: Member[] = [
    ['id', ''],
    ['result', `{"#":${lines.length},"sessionId":"stolen${chance.int(3)}"}`],
  ]
  worker.say({ kind: 'response', method: 'lie', idRaw, members }, { isVague: true })
  worker.vagueIds.add(idRaw)
}

const JUNK: readonly string[] = [
  'warning: junk',
  '[]',
  '{"half',
  '',
  '   ',
  '{"id":null,"error":{}}',
  '{"method":5}',
  '\xff',
]

function babble(worker: SimWorker): void {
  const { chance } = worker.world
  if (chance.is(0.97)) worker.blurt(chance.pick(JUNK))
  else worker.blurt(`"${'z'.repeat(worker.spec.limits.maxInputBufferBytes)}"`)
}
