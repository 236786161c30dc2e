/**
 * What is said around calls of agents: clients and workers call, workers answer in all the spellings that agents use, in
 * parts, late or not at all.
 */
import type { Chance } from './chance.ts'
import { call, giveUp } from './client-speech.ts'
import { type Draft, INNER, idKey, type Member, respell } from './line.ts'
import type { SimClient } from './sim-client.ts'
import type { Received, Remarks, SimWorker } from './sim-worker.ts'
import { drawPad, drawQuestionId } from './worker-speech.ts'
import type { World } from './world.ts'

type Say = (client: SimClient) => void

/** A call as anybody may make it; `params` begins with a comma. */
interface Called {
  readonly method: string
  readonly params: string
}

const MAX_QUESTIONS = 4
const TRACES: readonly string[] = ['"T"', '"U"', '"AIO-TR-20260101-0001"']

// ---- clients ----

export function callAgents(client: SimClient): void {
  const { chance } = client.world
  // Who speaks a protocol as well must be able to tell which of its requests was answered.
  const isPure = client.tongue === 'plain' || client.callShare === 1
  chance.weigh<Say>(isPure ? PURE : TRACED)(client)
}

function callAgent(client: SimClient): void {
  const { world } = client
  callWith(client, drawCall(world, world.lines.length), world.chance.is(0.9))
}

function callWith(client: SimClient, { method, params }: Called, isRequest: boolean): void {
  const { chance } = client.world
  const extra: Member[] = chance.is(0.3) ? [['trace_id', chance.pick(TRACES)]] : []
  const meta = chance.is(0.3) && isRequest ? `,"_meta":{"progressToken":${chance.int(5)}}` : ''
  const line = call(client, method, {
    isRequest,
    params: `${params}${meta}`,
    extra,
    names: [],
    ...(chance.is(0.2) ? { sessionId: `s${chance.int(3)}` } : {}),
  })
  line.isCall = true
}

const BUS_METHODS: readonly string[] = [
  'help',
  'bus::help',
  'bus::agents.list',
  'bus::trace.new',
  'bus::traces.list',
  'bus::traces.get',
  'bus::nothing',
]

function callBus(client: SimClient): void {
  const { chance } = client.world
  callWith(client, { method: chance.pick(BUS_METHODS), params: '' }, chance.is(0.95))
}

const BAD_NAMES: readonly string[] = ['a::', '::b', 'a::9', 'a b::c', 'a::b c', '::']

function callBadly(client: SimClient): void {
  const { chance } = client.world
  if (chance.is(0.7)) return callWith(client, { method: chance.pick(BAD_NAMES), params: '' }, chance.is(0.9))
  const line = call(client, 'a::work', { extra: [['trace_id', chance.pick(['5', '"a b"', '""'])]], names: [] })
  line.isCall = true
}

/** A call of its own that it wants no more, in the words of either protocol. */
function cancelCall(client: SimClient): void {
  const { chance } = client.world
  const calls = [...client.open.values()].flatMap((lines) => [...lines]).filter(({ isCall }) => isCall)
  if (calls.length === 0) return
  const { idRaw } = chance.pick(calls)
  const method = chance.pick(['notifications/cancelled', '$/cancel_request'])
  giveUp(client, respell(idRaw!))
  call(client, method, { isRequest: false, params: `,"requestId":${INNER}`, inner: idRaw!, names: [] }).isStray = true
}

const TRACED: readonly (readonly [number, Say])[] = [[1, callAgent]]
const PURE: readonly (readonly [number, Say])[] = [
  [10, callAgent],
  [1, callBus],
  [0.5, callBadly],
  [1.5, cancelCall],
]

// ---- what can be called ----

function drawCall({ chance, desk }: World, serial: number): Called {
  const agent = chance.is(0.95) && desk!.agents.length > 0 ? chance.pick(desk!.agents) : undefined
  if (agent === undefined) return { method: `${chance.pick(['nobody', 'bus2', 'A'])}::work`, params: '' }
  const { method, params } = agent.type === 'mcp' ? drawModule(chance, serial) : drawMethod(chance)
  return { method: `${agent.name}::${method}`, params }
}

function drawMethod(chance: Chance): Called {
  return chance.weigh<Called>([
    [6, { method: 'work', params: '' }],
    [4, { method: 'input', params: ',"inputs":[{"type":"text","value":"x"}]' }],
    [1, { method: 'input', params: ',"input":{"type":"file","value":{}}' }],
    [0.5, { method: 'input', params: chance.pick([',"inputs":[]', ',"inputs":[{"type":"smell","value":1}]', '']) }],
    [1, { method: 'help', params: '' }],
  ])
}

function drawModule(chance: Chance, serial: number): Called {
  return chance.weigh<Called>([
    [8, { method: 'tools.call', params: `,"tool":"t","args":{"#":${serial}}` }],
    [0.5, { method: 'tools.call', params: '' }],
    [1, { method: 'tools.list', params: '' }],
    [1, { method: 'resources.get', params: ',"id":"file:///1"' }],
    [1, { method: 'prompts.get', params: ',"id":"p","args":{"n":1}' }],
    [1, { method: 'sampling.start', params: ',"prompt":"x"' }],
    [0.5, { method: 'sampling.step', params: `,"sampling_id":"sampling-${chance.between(1, 3)}","prompt":"y"` }],
    [1, { method: 'help', params: '' }],
    [0.3, { method: 'input', params: '' }],
    [0.3, { method: 'work', params: '' }],
  ])
}

// ---- workers that call ----

/** It calls another agent, or itself, for the sake of what it works on; in a deep world always, and at once. */
export function callOn(worker: SimWorker, received: Received | undefined): void {
  const { world } = worker
  const { chance } = world
  const isDeep = world.scenario.aio!.isDeep && received !== undefined
  if (worker.questions.size >= MAX_QUESTIONS && !isDeep) return
  const called = isDeep ? deepCall(worker) : chance.is(0.05) ? busCall(chance) : drawCall(world, world.lines.length)
  const isRequest = isDeep || chance.is(0.9)
  const members: Member[] = [['jsonrpc', '"2.0"']]
  const idRaw = isRequest ? drawQuestionId(worker) : undefined
  if (isRequest) members.push(['id', ''])
  members.push(['method', JSON.stringify(called.method)])
  const { meta, trace } = drawDescent(chance, received, isDeep)
  // No session, and no harm: what a worker means by it is between the two agents.
  const odd = chance.is(0.03) ? ',"sessionId":4' : ''
  if (trace !== undefined) members.push(['trace_id', JSON.stringify(trace)])
  members.push(['params', `{"#":${world.lines.length}${called.params}${odd}${meta}}`])
  const draft: Draft = { kind: isRequest ? 'request' : 'notification', method: called.method, idRaw, members }
  const line = worker.say(draft, { isCall: true })
  if (isRequest) worker.questions.set(respell(idRaw!), line)
}

function busCall(chance: Chance): Called {
  return { method: chance.pick(BUS_METHODS.slice(1)), params: '' }
}

function deepCall({ pool, tongue, world }: SimWorker): Called {
  if (tongue === 'plain') return { method: `${pool}::work`, params: '' }
  return { method: `${pool}::tools.call`, params: `,"tool":"t","args":{"#":${world.lines.length}}` }
}

/** How a call says whose child it is: by its span, by its name, by its trace, or not at all. */
function drawDescent(
  chance: Chance,
  received: Received | undefined,
  isDeep: boolean,
): { meta: string; trace?: string } {
  const { traceparent, 'stdio-bus/call_id': callId } = received?.meta ?? {}
  const roll = isDeep ? chance.next() * 0.6 : chance.next()
  if (roll < 0.4 && traceparent !== undefined) return { meta: `,"_meta":{"traceparent":"${traceparent}"}` }
  if (roll < 0.6 && callId !== undefined) return { meta: `,"_meta":{"stdio-bus/parent":"${callId}"}` }
  const trace = received?.call?.traceId
  return roll < 0.8 && trace !== undefined ? { meta: '', trace } : { meta: '' }
}

// ---- workers that are called ----

/** One step of work on a call. */
export function serve(worker: SimWorker, received: Received): void {
  const { chance, scenario } = worker.world
  const isTalkative = worker.temper === 'chatty' ? 0.6 : 0.2
  if (chance.is(isTalkative)) sayPart(worker, received)
  const { isDeep, workerShare } = scenario.aio!
  if (!isDeep && chance.is(workerShare)) callOn(worker, received)
  if (worker.withholds(received)) return
  const isBusy = isDeep && worker.questions.size > 0
  if (chance.is(worker.temper === 'slow' || isBusy ? 0.05 : 0.7)) answerCall(worker, received)
}

function sayPart(worker: SimWorker, received: Received): void {
  const { lines } = worker.world
  const of: Remarks = { callOf: received.call, isPart: true, isVague: worker.vagueIds.has(idKey(received.idRaw)) }
  if (worker.tongue !== 'plain') {
    if (received.tokenRaw === undefined) return
    const params = `{"progressToken":${received.tokenRaw},"progress":${lines.length}}`
    const members: Member[] = [
      ['jsonrpc', '"2.0"'],
      ['method', '"notifications/progress"'],
      ['params', params],
    ]
    worker.say({ kind: 'notification', method: 'notifications/progress', members }, of)
    return
  }
  const outputs = `[{"type":"text","value":"v","#":${lines.length}}]`
  const isNested = worker.world.chance.is(0.3)
  const members: Member[] = [
    ['id', ''],
    ['partial', 'true'],
    isNested ? ['result', `{"outputs":${outputs}}`] : ['outputs', outputs],
  ]
  worker.say({ kind: 'response', method: received.method, idRaw: received.idRaw, members }, of)
}

/** The member of an answer that says what the agent has to say. */
type Form = (serial: number, pad: string, idRaw: string) => Member

const failure: Form = (serial) => ['error', `{"code":-7,"message":"no","data":{"#":${serial}}}`]
const PLAIN_FORMS: readonly (readonly [number, Form])[] = [
  [6, (serial, pad) => ['result', `{"#":${serial}${pad}}`]],
  [1, (serial, pad) => ['output', `{"type":"text","value":"v","#":${serial}${pad}}`]],
  [1, (serial, pad) => ['outputs', `[{"type":"text","value":"v","#":${serial}${pad}}]`]],
  [1, (serial, pad, id) => ['result', `{"jsonrpc":"2.0","id":${id},"output":{"type":"text","#":${serial}${pad}}}`]],
  [0.5, () => ['output', '{"type":"error","message":"503"}']],
  [1, failure],
]
const MCP_FORMS: readonly (readonly [number, Form])[] = [
  [6, (serial, pad) => ['result', `{"#":${serial},"content":[{"type":"text","text":"v"}]${pad}}`]],
  [1, (serial, pad) => ['result', `{"#":${serial},"isError":true,"content":[]${pad}}`]],
  [0.3, (serial) => ['result', `{"#":${serial},"resultType":"input_required"}`]],
  [1, failure],
]
const HELP_FORMS: readonly (readonly [number, Form])[] = [
  [1, (serial) => ['error', `{"code":-32601,"message":"no help","data":{"#":${serial}}}`]],
  [1, (serial, pad) => ['result', `{"#":${serial},"methods":["work",{"name":"input"}]${pad}}`]],
]

export function answerCall(worker: SimWorker, received: Received): void {
  const { chance, lines } = worker.world
  const { idRaw, call: answered } = received
  const key = idKey(idRaw)
  worker.open.delete(key)
  const forms = worker.tongue !== 'plain' ? MCP_FORMS : answered!.method === 'help' ? HELP_FORMS : PLAIN_FORMS
  const outcome = chance.weigh<Form>(forms)(lines.length, drawPad(worker), idRaw)
  const members: Member[] = [['jsonrpc', '"2.0"'], ['id', ''], outcome]
  if (chance.is(0.2)) members.reverse()
  const of = { to: 'bus' as const, callOf: answered, isVague: worker.vagueIds.has(key) }
  worker.say({ kind: 'response', method: received.method, idRaw, members }, of)
}

/** What a server says it offers, where somebody may call it. */
export function modulesOf({ world, pool }: SimWorker): string {
  const isCalled = world.desk?.agents.some(({ name }) => name === pool) === true
  return isCalled ? '{"tools":{},"prompts":{}}' : '{}'
}
