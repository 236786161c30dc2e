/**
 * Judges what is heard of calls: an agent gets a call once, as its caller meant it, and a caller gets every part of the
 * answer and its one end, under the very id it gave, and nothing of others.
 *
 * A call is recognised by its place in the trace, so even what the gateway says in its own name can be laid at a line.
 */
import { FAULT_CODES } from '../../src/aio/faults.ts'
import { MAX_DEPTH } from '../../src/aio/parents.ts'
import { FAULTS } from '../../src/kernel/faults.ts'
import { callOn } from './call-speech.ts'
import { hasCallLostWorker } from './causes.ts'
import { type CallRecord, ClientLine, idIn, idKey, serialIn, WorkerLine } from './line.ts'
import type { SimClient } from './sim-client.ts'
import type { Received, SimWorker } from './sim-worker.ts'
import { demand, Violation } from './violation.ts'
import type { World } from './world.ts'

type Meta = Readonly<Record<string, string>>

interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>> & { readonly _meta?: Meta }
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly data?: { readonly reason?: string } }
  readonly trace_id?: string
  readonly call_id?: number
}

const PARTIAL = '::partial'

function read(who: SimClient | SimWorker, text: string): Message {
  try {
    return JSON.parse(text) as Message
  } catch {
    throw new Violation('bytes unchanged', `${who} got what is no message: ${text}`)
  }
}

// ---- callers ----

/** False: it has nothing to do with calls that are traced. */
export function hearAsCaller(client: SimClient, text: string): boolean {
  const message = read(client, text)
  if (message.method?.endsWith(PARTIAL)) {
    judgePart(client.world, client, message, text)
    return true
  }
  if (message.call_id === undefined || message.method !== undefined) return false
  const call = client.world.desk!.calls.get(`${message.trace_id}#${message.call_id}`)
  const line = call?.line
  demand(
    line instanceof ClientLine && line.author === client,
    'nobody else sees it',
    () => `${client} got an answer to ${line?.author}: ${text}`,
  )
  demandSpelling(client, line, text)
  judgeEnd(client.world, client, line, message, text)
  client.callAnswers++
  client.settleRequest(line)
  return true
}

/** The answer to a call that a worker made; false: it is no such answer. */
function hearAsCallingWorker(worker: SimWorker, message: Message, text: string): boolean {
  const key = JSON.stringify(message.id)
  const question = worker.questions.get(key)
  if (question?.isCall !== true) return false
  worker.questions.delete(key)
  demandSpelling(worker, question, text)
  question.isAnswered = true
  if (question.call === undefined) {
    const isUntraced = question.method.startsWith('bus::') || message.error !== undefined
    demand(isUntraced, 'justified', () => `${worker} got an answer without a trace: ${text}`)
    return true
  }
  judgeEnd(worker.world, worker, question, message, text)
  if (!isStrict(worker)) {
    const isPlaced = message.trace_id === question.call.traceId && message.call_id === question.call.callId
    demand(isPlaced, 'nobody else sees it', () => `${worker} got an answer to another call: ${text}`)
  } else demandStrict(worker, message, text)
  return true
}

function demandSpelling(who: SimClient | SimWorker, line: ClientLine | WorkerLine, text: string): void {
  const idRaw = idIn(text)
  demand(
    idRaw !== undefined && idKey(idRaw) === idKey(line.idRaw!),
    'bytes unchanged',
    () => `${who} asked with the id ${line.idRaw} and got ${text}`,
  )
}

const ABANDONED: ReadonlySet<string> = new Set(['cancelled', 'caller_gone'])

function judgeEnd(
  world: World,
  who: SimClient | SimWorker,
  line: ClientLine | WorkerLine,
  message: Message,
  text: string,
): void {
  const call = line.call!
  demand(call.isRequest, 'answered once', () => `${who} got an answer to a notification: ${text}`)
  demand(call.end !== undefined, 'answered once', () => `${who} got an answer that is not in the trace: ${text}`)
  demand(!ABANDONED.has(call.end), 'answered once', () => `${who} got an answer to a call that is ${call.end}: ${text}`)
  const serial = serialIn(text)
  if (serial !== -1) judgeSaid(world, who, call, serial, message, text)
  else if (message.error !== undefined) judgeFault(world, who, call, message.error, text)
  else demand(call.method === 'help', 'justified', () => `${who} got what no agent said: ${text}`)
}

/** The words of an agent: its own words for this call, and for the first time. What it says of itself is for all. */
function judgeSaid(
  world: World,
  who: SimClient | SimWorker,
  call: CallRecord,
  serial: number,
  message: Message,
  text: string,
): void {
  const said = world.lines[serial]
  demand(said instanceof WorkerLine, 'nobody else sees it', () => `${who} got what no worker wrote: ${text}`)
  if (said.isVague || call.method === 'help') return
  demand(said.callOf === call, 'nobody else sees it', () => `${who} got the answer to ${said.callOf?.key}: ${text}`)
  demand(!said.isPart, 'answered once', () => `${who} got a part as its answer: ${text}`)
  demand(!said.isAnswered, 'answered once', () => `${who} got an answer twice: ${text}`)
  said.isAnswered = true
  if (said.author.tongue !== 'plain' || message.error !== undefined) return
  const { result } = JSON.parse(said.text) as { result?: Readonly<Record<string, unknown>> }
  // An envelope in the result, or another word for it, is opened; the result of a strict peer has the trace in it.
  if (result === undefined || result['jsonrpc'] !== undefined || isStrict(who)) return
  const isSame = JSON.stringify(message.result) === JSON.stringify(result)
  demand(isSame, 'bytes unchanged', () => `${who} should have got ${said.text} but got ${text}`)
}

/** A server that is an agent gets nothing that MCP does not know. */
function isStrict(who: SimClient | SimWorker): boolean {
  return 'slot' in who && who.world.desk!.agents.some(({ name, type }) => name === who.pool && type === 'mcp')
}

function judgeFault(
  world: World,
  who: SimClient | SimWorker,
  call: CallRecord,
  { code, data }: NonNullable<Message['error']>,
  text: string,
): void {
  const reason = data?.reason ?? ''
  demand(isKnownFault(reason, code), 'justified', () => `${who} got an unknown error: ${text}`)
  world.countReason(reason)
  const isTrue = JUSTIFIED[reason]?.(world, call) !== false
  demand(isTrue, 'justified', () => `${who} got ${reason} for ${call.line?.text}: ${text}`)
}

/** A reason of the gateway or of the kernel, with its code. */
export function isKnownFault(reason: string, code: number): boolean {
  return (
    (FAULT_CODES as Record<string, number>)[reason] === code ||
    (FAULTS as Record<string, { code: number } | undefined>)[reason]?.code === code
  )
}

const JUSTIFIED: Readonly<Record<string, (world: World, call: CallRecord) => boolean>> = {
  shutting_down: (world) => world.isStopping,
  worker_exited: (world, call) => hasCallLostWorker(world, call, (worker) => worker.endedAtMs),
  worker_stalled: (world, call) => hasCallLostWorker(world, call, (worker) => worker.stalledAtMs),
  agent_timeout: (world, call) => world.nowMs - call.startedMs >= call.timeoutMs,
  unknown_agent: (world, call) => world.hasReloaded || world.desk!.agents.every(({ name }) => name !== call.agent),
  too_many_pending: (world) => world.spec.limits.maxPendingPerClient < 4_096,
  // Whoever sends too long a line is closed; what the gateway writes is its own affair.
  message_too_large: () => false,
  // A worker with several open calls is below the shallowest of them, whatever its parent and its trace.
  too_deep: (world) => world.desk!.calls.size > MAX_DEPTH,
}

/** A part of an answer, in order and before its end. */
function judgePart(world: World, who: SimClient | SimWorker, message: Message, text: string): void {
  const { progress, seq, partial } = message.params as { progress?: number; seq: number; partial: boolean }
  const said = world.lines[progress ?? serialIn(text)]
  const isPart = said instanceof WorkerLine && said.isPart && partial === true
  demand(isPart, 'nobody else sees it', () => `${who} got what is no part of an answer: ${text}`)
  if (said.isVague) return
  const call = said.callOf!
  const line = call.line
  demand(line?.author === who, 'nobody else sees it', () => `${who} got a part for ${line?.author}: ${text}`)
  demandSpelling(who, line, text)
  demand(!line.isAnswered && !said.isAnswered, 'answered once', () => `${who} got a part after the end: ${text}`)
  said.isAnswered = true
  call.partials++
  demand(seq === call.partials, 'order kept', () => `${who} should have got part ${call.partials} but got ${text}`)
}

// ---- agents ----

/** False: it has nothing to do with calls. */
export function hearAsAgent(worker: SimWorker, text: string): boolean {
  const message = read(worker, text)
  if (message.method === undefined) return hearAsCallingWorker(worker, message, text)
  if (message.method.endsWith(PARTIAL)) {
    judgePart(worker.world, worker, message, text)
    return true
  }
  const call = callIn(worker, message, text)
  if (call === undefined) return false
  hearCall(worker, call, message, text)
  return true
}

function callIn({ world }: SimWorker, message: Message, text: string): CallRecord | undefined {
  const key = message.params?._meta?.['stdio-bus/call_id']
  if (key !== undefined) return world.desk!.calls.get(key)
  const line = world.lines[serialIn(text)]
  return line?.isCall === true ? line.call : undefined
}

const STRICT_KEYS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])

function demandStrict(worker: SimWorker, message: Message, text: string): void {
  const odd = Object.keys(message).find((key) => !STRICT_KEYS.has(key))
  demand(odd === undefined, 'bytes unchanged', () => `${worker} speaks MCP and got ${odd}: ${text}`)
}

function hearCall(worker: SimWorker, call: CallRecord, message: Message, text: string): void {
  const isRight = worker.world.mayServe(call.agent, worker.pool)
  demand(isRight, 'nobody else sees it', () => `${worker} of ${worker.pool} got ${text}`)
  // Help is asked for in more than one spelling.
  const isFirst = call.receiver === undefined || call.method === 'help'
  demand(isFirst, 'answered once', () => `${worker} got what ${call.receiver} has got: ${text}`)
  call.receiver = worker
  demand(call.depth <= MAX_DEPTH, 'bounded', () => `${worker} got a call ${call.depth} levels deep: ${text}`)
  demandOwn(worker, call, text)
  if (worker.tongue !== 'plain') demandStrict(worker, message, text)
  else if (call.method !== 'help') demandParams(worker, call, message, text)
  if (message.id === undefined) return
  const idRaw = JSON.stringify(message.id)
  const key = idKey(idRaw)
  const isFree = (!worker.open.has(key) && !worker.unansweredIds.has(key)) || worker.vagueIds.has(key)
  demand(isFree, 'answered once', () => `${worker} got an id that is taken there: ${text}`)
  worker.usedIds.add(key)
  const meta = message.params?._meta
  const token = meta?.['progressToken']
  const received: Received = {
    idRaw,
    method: message.method!,
    line: undefined,
    call,
    ...(meta === undefined ? {} : { meta }),
    ...(token === undefined ? {} : { tokenRaw: JSON.stringify(token) }),
  }
  worker.open.set(key, received)
  if (worker.world.scenario.aio!.isDeep) callOn(worker, received)
}

/** A worker that is somebody's own serves one call. */
function demandOwn(worker: SimWorker, call: CallRecord, text: string): void {
  if (worker.spec.sharing !== 'isolated') return
  worker.soleCall ??= call
  const isOwn = worker.soleCall === call && worker.sole === undefined
  demand(isOwn, 'nobody else sees it', () => `${worker} belongs to ${worker.sole ?? worker.soleCall?.key}: ${text}`)
}

/** Whatever the caller gave, but for what the bus adds and puts in its place. */
function demandParams(worker: SimWorker, call: CallRecord, message: Message, text: string): void {
  if (call.line === undefined) return
  const given = (JSON.parse(call.line.text) as Message).params
  const { inputs: _had, ...got } = { ...message.params, _meta: undefined } as Record<string, unknown>
  const { inputs: _gave, ...gave } = { ...given, _meta: undefined } as Record<string, unknown>
  demand(
    JSON.stringify(got) === JSON.stringify(gave),
    'bytes unchanged',
    () => `${worker} should have got the params of ${call.line!.text} but got ${text}`,
  )
}
