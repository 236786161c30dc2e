/**
 * What simulated clients say: the plain contract of the seed, ACP, MCP with a handshake and MCP without one, and now and
 * then something that no client should say.
 */
import { callAgents } from './call-speech.ts'
import type { Chance } from './chance.ts'
import { type ClientLine, type Draft, INNER, type Member, respell } from './line.ts'
import type { TongueName } from './scenario.ts'
import type { SimClient } from './sim-client.ts'
import { drawTool, presentItself } from './visit-speech.ts'

type Say = (client: SimClient) => void
type Rows = readonly (readonly [weight: number, say: Say])[]

interface Call {
  readonly isRequest?: boolean
  /** The rest of params, beginning with a comma. */
  readonly params?: string
  readonly sessionId?: string
  readonly inner?: string
  readonly names?: readonly string[]
  readonly extra?: readonly Member[]
}

export function speak(client: SimClient): void {
  const { chance, scenario } = client.world
  if (client.visit !== undefined && presentItself(client)) return
  if (!client.hasSpoken && client.addressing === 'open') return open(client)
  if (chance.is(0.02 * scenario.malice)) return blunder(client)
  if (client.asked.size > 0 && chance.is(0.5)) return client.answer([...client.asked.values()][0]!)
  if (chance.is(0.01)) return answerUnasked(client)
  if (client.mayCall && chance.is(client.callShare)) return callAgents(client)
  if (client.tongue !== 'plain' && !client.hasInitialised) return introduce(client)
  // Who speaks a protocol hears what the other side says to its first request before it goes on.
  if (client.tongue !== 'plain' && client.answers - client.callAnswers < client.patience && !scenario.isMixed) return
  if (client.tongue === 'legacy' && client.introduction !== undefined) return confirm(client)
  if (client.hasBatches && chance.is(0.4)) return speakAtOnce(client)
  if (client.visit !== undefined && client.tongue === 'modern' && chance.is(0.1)) return callList(client)
  chance.weigh<Say>(SPEECH[client.tongue])(client)
}

/** Several messages in one array (MCP 2025-03-26). */
function speakAtOnce(client: SimClient): void {
  const { chance } = client.world
  client.gather()
  for (let i = chance.between(1, 4); i > 0; i--) chance.weigh<Say>(SPEECH[client.tongue])(client)
  client.sendBatch()
}

// ---- lines ----

export function call(client: SimClient, method: string, what: Call): ClientLine {
  const { world } = client
  const { chance } = world
  const isRequest = what.isRequest ?? true
  const idRaw = isRequest ? drawId(client) : undefined
  const pool = client.addressing === 'line' ? (chance.is(0.005) ? 'nowhere' : client.pool) : undefined
  const members: Member[] = [['jsonrpc', '"2.0"']]
  if (isRequest) members.push(['id', ''])
  members.push(['method', JSON.stringify(method)])
  if (what.sessionId !== undefined) members.push(['sessionId', JSON.stringify(what.sessionId)])
  if (pool !== undefined) members.push(['pool', JSON.stringify(pool)])
  if (what.extra !== undefined) members.push(...what.extra)
  members.push(['params', `{"#":${world.lines.length}${what.params ?? ''}${drawPad(chance)}}`])
  if (chance.is(0.3)) shuffle(members, chance)
  const draft: Draft = {
    kind: isRequest ? 'request' : 'notification',
    method,
    idRaw,
    innerRaw: what.inner,
    members,
    comma: chance.is(0.2) ? ', ' : ',',
  }
  const line = client.say(draft)
  line.sessions = what.names ?? (what.sessionId === undefined ? [] : [what.sessionId])
  line.pool = pool
  for (const name of line.sessions) client.noteName(name)
  return line
}

function shuffle(members: Member[], chance: Chance): void {
  for (let i = members.length - 1; i > 0; i--) {
    const j = chance.int(i + 1)
    const member = members[i]!
    members[i] = members[j]!
    members[j] = member
  }
}

/** Payload of any length and in any spelling; the bytes of UTF-8 one by one. */
function drawPad(chance: Chance): string {
  const roll = chance.next()
  if (roll < 0.7) return ''
  if (roll < 0.8) return ',"pad":"\xc3\xa9\\u0041\\"}\\n","nested":{"sessionId":"x","method":"y"}'
  return `,"pad":"${'x'.repeat(roll < 0.98 ? chance.int(300) : chance.int(3_000))}"`
}

const ODD_IDS: readonly ((count: number) => string)[] = [
  (count) => `${count}.0`,
  (count) => `${count}e0`,
  (count) => `98765432109876543${10 + count}`,
  (count) => `"\\ud800${count}"`,
  (count) => `"\\u0061${count}"`,
]

/** Mostly small numbers, so that the ids of different clients collide; sometimes one that is taken, or an odd one. */
function drawId(client: SimClient): string {
  const { chance } = client.world
  const roll = chance.next()
  if (roll < 0.55) return String(chance.between(1, 9))
  if (roll < 0.7) return `"r${chance.between(1, 9)}"`
  if (roll < 0.75 && client.open.size > 0) for (const [line] of client.open.values()) return line!.idRaw!
  if (roll < 0.85) return chance.pick(ODD_IDS)(chance.between(1, 9))
  return String(client.world.lines.length)
}

function drawToken(client: SimClient): string {
  const { chance } = client.world
  return chance.is(0.8) ? String(chance.between(1, 5)) : chance.pick(['"t1"', '2.0', '"\\ud800t"'])
}

// ---- plain ----

function ownSession(client: SimClient): string {
  const name = `s${client.id}-${client.world.chance.int(4)}`
  client.named.add(name)
  return name
}

function callPlain(client: SimClient): void {
  call(client, 'work', { isRequest: client.world.chance.is(0.7) })
}

function callInSession(client: SimClient): void {
  const { chance } = client.world
  const name = chance.is(0.85) ? ownSession(client) : `common${chance.int(3)}`
  client.named.add(name)
  const isRequest = chance.is(0.7)
  const inParams = `,"sessionId":${JSON.stringify(name)}`
  const where = chance.next()
  if (where < 0.5) call(client, 'work', { isRequest, sessionId: name })
  else if (where < 0.8) call(client, 'work', { isRequest, params: inParams, names: [name] })
  else {
    const other = ownSession(client)
    call(client, 'work', { isRequest, params: inParams, sessionId: other, names: [other, name] })
  }
}

/** A session that another client has made: none of this client's business. */
function trespass(client: SimClient): void {
  const { chance, clients } = client.world
  const other = chance.pick(clients)
  const name = other.sessions[0] ?? [...other.named][0]
  if (other === client || name === undefined) return
  client.world.contested.add(name)
  const params = `,"sessionId":${JSON.stringify(name)}`
  call(client, client.tongue === 'acp' ? 'session/prompt' : 'work', { params, names: [name] })
}

// ---- ACP ----

/** Who is refused introduces itself again: what it says before means nothing. */
function introduce(client: SimClient): void {
  client.hasInitialised = true
  client.introduction = INTRODUCE[client.tongue](client)
}

function confirm(client: SimClient): void {
  client.introduction = undefined
  call(client, 'notifications/initialized', { isRequest: false })
}

const INTRODUCE: Readonly<Record<TongueName, (client: SimClient) => ClientLine | undefined>> = {
  plain: () => undefined,
  acp: (client) => call(client, 'initialize', { params: `,"protocolVersion":${client.wantedVersion}` }),
  legacy: (client) => {
    const { chance, scenario } = client.world
    const isOlder = scenario.customs.hasBatches && chance.is(0.7)
    const version = isOlder ? '2025-03-26' : chance.pick(['2024-11-05', '2025-06-18', '2025-11-25', '1999-01-01'])
    return call(client, 'initialize', { params: `,"protocolVersion":"${version}","capabilities":{}` })
  },
  modern: (client) => (client.world.chance.is(0.6) ? callDiscover(client) : callTool(client)),
}

function inSession(method: string, isRequest = true): Say {
  return (client) => {
    const name = client.sessions.length === 0 ? undefined : client.world.chance.pick(client.sessions)
    if (name === undefined) return callNew(client)
    if (method === 'session/close') client.sessions = client.sessions.filter((other) => other !== name)
    call(client, method, { isRequest, params: `,"sessionId":${JSON.stringify(name)}`, names: [name] })
  }
}

function callNew(client: SimClient): void {
  const method = client.world.chance.is(0.9) ? 'session/new' : 'session/fork'
  const { serial } = call(client, method, { params: ',"cwd":"/","mcpServers":[]' })
  client.everNamed.add(`the one of ${serial}`)
}

function callLoad(client: SimClient): void {
  const { chance, clients } = client.world
  const names = chance.pick(clients).sessions
  const name = names.length > 0 && chance.is(0.7) ? chance.pick(names) : `old${chance.int(5)}`
  client.claimed.add(name)
  const line = call(client, chance.pick(['session/load', 'session/resume']), {
    params: `,"sessionId":${JSON.stringify(name)}`,
    names: [name],
  })
  line.about = name
}

function cancel(method: string): Say {
  return (client) => {
    const open = [...client.open.entries()]
    if (open.length === 0) return
    const [, lines] = client.world.chance.pick(open)
    const [first] = lines
    if (first === undefined || first.method === 'initialize' || first.method === 'bus::open') return
    giveUp(client, respell(first.idRaw!))
    call(client, method, { isRequest: false, params: `,"requestId":${INNER}`, inner: first.idRaw! })
  }
}

/** Ids are compared by value: whichever of these requests is meant, it is owed nothing more. */
export function giveUp(client: SimClient, value: string): void {
  for (const lines of client.open.values()) {
    for (const line of lines) {
      if (line.isCancelled || respell(line.idRaw!) !== value) continue
      line.isCancelled = true
      client.cancelledCount++
    }
  }
}

// ---- MCP ----

const MODERN = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"'

function metaOf(client: SimClient, hasToken: boolean): string {
  const parts = client.tongue === 'modern' ? [MODERN] : []
  if (hasToken) parts.push(`"progressToken":${INNER}`)
  if (client.tongue === 'modern' && client.world.chance.is(0.3)) parts.push('"io.modelcontextprotocol/logLevel":"info"')
  return parts.length === 0 ? '' : `,"_meta":{${parts.join(',')}}`
}

function callTool(client: SimClient): ClientLine {
  const { chance } = client.world
  const hasToken = chance.is(0.5)
  const extra: Member[] = chance.is(0.2) ? [['trace_id', '"t"']] : []
  if (chance.is(0.1)) extra.push(['sessionId', '"x"'])
  const named = client.visit === undefined ? undefined : drawTool(client)
  const line = call(client, 'tools/call', {
    params: `${named?.text ?? ''}${metaOf(client, hasToken)}`,
    ...(hasToken ? { inner: drawToken(client) } : {}),
    extra,
  })
  line.tool = named?.tool
  return line
}

function callSimply(method: string, params = ''): Say {
  return (client) => void call(client, method, { params: `${params}${metaOf(client, false)}` })
}

/** The first page, or a later one. */
function callList(client: SimClient): void {
  const isPaged = client.visit !== undefined && client.world.chance.is(0.4)
  callSimply('tools/list', isPaged ? ',"cursor":"2"' : '')(client)
}

function callDiscover(client: SimClient): ClientLine {
  return call(client, 'server/discover', { params: metaOf(client, false) })
}

function callResource(method: string): Say {
  return (client) => {
    const uri = `file:///${client.world.chance.int(3)}`
    if (method === 'resources/subscribe') client.subscribed.add(uri)
    call(client, method, { params: `,"uri":"${uri}"` }).about = uri
  }
}

function setLevel(client: SimClient): void {
  call(client, 'logging/setLevel', { params: `,"level":"${client.world.chance.pick(['debug', 'info', 'error'])}"` })
}

function callTask(client: SimClient): void {
  const { chance, clients } = client.world
  const { tasks } = chance.is(0.8) ? client : chance.pick(clients)
  if (tasks.length === 0) return
  const taskId = chance.pick(tasks)
  call(client, 'tasks/get', { params: `,"taskId":"${taskId}"${metaOf(client, false)}` }).about = taskId
}

const SPEECH: Readonly<Record<TongueName, Rows>> = {
  plain: [
    [6, callPlain],
    [6, callInSession],
    [0.3, trespass],
    [0.2, callSimply('bus::nothing')],
  ],
  acp: [
    [3, callNew],
    [8, inSession('session/prompt')],
    [2, inSession('session/cancel', false)],
    [1, inSession('session/close')],
    [1, callLoad],
    [1, callSimply('session/list')],
    [2, cancel('$/cancel_request')],
    [1, callSimply('_x/anything')],
    [0.5, trespass],
  ],
  legacy: [
    [8, callTool],
    [1, callList],
    [1, callSimply('ping')],
    [1, setLevel],
    [1, callResource('resources/subscribe')],
    [1, callResource('resources/unsubscribe')],
    [2, cancel('notifications/cancelled')],
    [1, callTask],
  ],
  modern: [
    [8, callTool],
    [1, callDiscover],
    [1.5, callSimply('subscriptions/listen')],
    [2, cancel('notifications/cancelled')],
    [1, callTask],
  ],
}

// ---- what no client should say ----

function open(client: SimClient): void {
  const { chance } = client.world
  const name = chance.is(0.03) ? 'nowhere' : client.pool
  const idRaw = chance.is(0.5) ? drawId(client) : undefined
  if (idRaw !== undefined) client.patience++
  client.isBadlyOpened = name === 'nowhere' || !client.world.spec.pools.some((pool) => pool.id === name)
  const id = idRaw === undefined ? '' : `"id":${idRaw},`
  const text = `{${id}"method":"bus::open","params":{"pool":"${name}"}}`
  if (client.isBadlyOpened) return client.blurt(text, idRaw)
  const members: Member[] = [
    ['method', '"bus::open"'],
    ['params', `{"pool":"${name}"}`],
  ]
  if (idRaw !== undefined) members.unshift(['id', ''])
  client.say({ kind: idRaw === undefined ? 'notification' : 'request', method: 'bus::open', idRaw, members })
}

const BLUNDERS: readonly string[] = [
  'hello',
  '{"id":1',
  '[1,2]',
  '{}',
  '5',
  '{"id":{},"method":"x"}',
  '{"id":1,"method":"x","result":1}',
  '{"id":7,"id":8,"method":"x"}',
  '{"jsonrpc":"2.0","id":5}',
  '{"id":3,"method":"x","params":{"sessionId":4}}',
  '{"id":3,"method":"\xff"}',
  '\xef\xbb\xbf{"id":3,"method":"x"}',
]

function blunder(client: SimClient): void {
  const { chance } = client.world
  client.blurt(chance.is(0.8) ? chance.pick(BLUNDERS) : `{"id":1,"method":"${'x'.repeat(client.maxLineBytes)}"}`)
}

/** An answer to a question never asked, or a second one to a question that was. */
function answerUnasked(client: SimClient): void {
  const { chance, world } = { chance: client.world.chance, world: client.world }
  const again = chance.is(0.5) ? client.lastAnswered : undefined
  const idRaw = again ?? `"never${chance.int(9)}"`
  if (again !== undefined) client.vagueIds.add(again)
  const line = client.say({
    kind: 'response',
    method: '',
    idRaw,
    members: [
      ['id', ''],
      ['result', `{"#":${world.lines.length}}`],
    ],
  })
  line.isVague = again !== undefined
}
