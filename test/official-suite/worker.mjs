// An MCP server over stdio in both eras, with what the official conformance suite asks of one. It is written without an SDK, so
// that what passes or fails is this server and the bus. Instances share the folder in which they run.
import { watch, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import * as offers from './offers.mjs'

const VERSION = '2026-07-28'
const META = 'io.modelcontextprotocol'
const SERVER = { name: 'stdio-bus-conformance-worker', version: '1.0.0' }
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']
const COMMON = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  completions: {},
}
/** Hints for caches, which 2026-07-28 wants on what can be cached. */
const CACHED = { ttlMs: 0, cacheScope: 'private' }

const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const notify = (method, params) => write({ method, params })

// ---- the questions of the handshake era ----

const questions = new Map()
let nextQuestion = 1

function ask(method, params) {
  const id = `question-${nextQuestion++}`
  write({ id, method, params })
  return new Promise((resolve, reject) => questions.set(id, { resolve, reject }))
}

// ---- subscriptions of the stateless era ----

/** By the id of their request: what they want to hear of. */
const listeners = new Map()

function listen(id, { notifications = {} }) {
  listeners.set(id, notifications)
  const _meta = { [`${META}/subscriptionId`]: id }
  notify('notifications/subscriptions/acknowledged', { notifications, _meta })
  return undefined
}

/** Tools or prompts have changed, here or in another instance. */
function changed(which) {
  const method = `notifications/${which}/list_changed`
  if (legacy !== undefined) notify(method)
  for (const [id, wanted] of listeners)
    if (wanted[`${which}ListChanged`]) notify(method, { _meta: { [`${META}/subscriptionId`]: id } })
}

for (const which of ['tools', 'prompts']) {
  writeFileSync(`changed-${which}`, '', { flag: 'a' })
  watch(`changed-${which}`, () => changed(which))
}

// ---- requests ----

/** What was agreed on in the handshake, if there was one. */
let legacy
let level = 'info'

function initialize({ protocolVersion, capabilities = {} }) {
  legacy = { capabilities }
  const agreed = protocolVersion <= '2025-11-25' ? protocolVersion : '2025-11-25'
  return { protocolVersion: agreed, capabilities: { ...COMMON, logging: {} }, serverInfo: SERVER }
}

/** What a tool can use of whoever called it. */
function sessionOf(params) {
  const meta = params._meta ?? {}
  const token = meta.progressToken
  const wanted = legacy === undefined ? meta[`${META}/logLevel`] : level
  return {
    capabilities: meta[`${META}/clientCapabilities`] ?? legacy?.capabilities ?? {},
    ask,
    progress: (progress, total) => {
      if (token !== undefined) notify('notifications/progress', { progressToken: token, progress, total })
    },
    log: (said, data) => {
      if (wanted !== undefined && LEVELS.indexOf(said) >= LEVELS.indexOf(wanted))
        notify('notifications/message', { level: said, logger: SERVER.name, data })
    },
  }
}

function find(table, name, what) {
  if (Object.hasOwn(table, name)) return table[name]
  throw { code: -32602, message: `There is no ${what} of this name.` }
}

const BOTH = {
  'tools/list': () => ({ tools: offers.TOOL_LIST, ...CACHED }),
  'tools/call': (params) => find(offers.TOOLS, params.name, 'tool').run(params, sessionOf(params)),
  'resources/list': () => ({ resources: offers.RESOURCE_LIST, ...CACHED }),
  'resources/templates/list': () => ({ resourceTemplates: offers.TEMPLATES, ...CACHED }),
  'resources/read': ({ uri }) => ({ contents: [offers.readResource(uri)], ...CACHED }),
  'prompts/list': () => ({ prompts: offers.PROMPT_LIST, ...CACHED }),
  'prompts/get': (params) => find(offers.PROMPTS, params.name, 'prompt').run({ arguments: {}, ...params }),
  'completion/complete': ({ argument }) => ({
    completion: {
      values: ['paris', 'park', 'party'].filter((each) => each.startsWith(argument.value)),
      hasMore: false,
    },
  }),
}
const HANDSHAKE = {
  initialize,
  ping: () => ({}),
  'logging/setLevel': (params) => {
    level = params.level
    return {}
  },
  'resources/subscribe': () => ({}),
  'resources/unsubscribe': () => ({}),
}
const STATELESS = {
  'server/discover': () => ({ supportedVersions: [VERSION], capabilities: COMMON, ...CACHED }),
}

/** The stateless era says of every result what it is and whose. */
function dressed(result) {
  const _meta = { ...result._meta, [`${META}/serverInfo`]: SERVER }
  return { resultType: 'complete', ...result, _meta }
}

async function serve({ id, method, params = {} }) {
  const isStateless = params._meta?.[`${META}/protocolVersion`] !== undefined
  const table = { ...BOTH, ...(isStateless ? STATELESS : HANDSHAKE) }
  if (isStateless && method === 'subscriptions/listen') return listen(id, params)
  try {
    if (!Object.hasOwn(table, method)) throw { code: -32601, message: 'Method not found' }
    const result = await table[method](params)
    write({ id, result: isStateless ? dressed(result) : result })
  } catch ({ code = -32603, message, data }) {
    write({ id, error: { code, message, ...(data === undefined ? {} : { data }) } })
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) {
    const question = questions.get(message.id)
    questions.delete(message.id)
    if (message.error === undefined) question?.resolve(message.result)
    else question?.reject(message.error)
  } else if (message.id !== undefined) void serve(message)
  else if (message.method === 'notifications/cancelled') listeners.delete(message.params?.requestId)
})
process.stdin.on('end', () => process.exit(0))
