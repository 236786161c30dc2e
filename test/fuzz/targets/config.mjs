/**
 * Fuzzes the reading of configuration: any text is either a configuration or a list of problems that people can find.
 *
 * The grammar knows every key and gives each right and wrong values; mutation then breaks the text. What is accepted must
 * be accepted in every other layout too, and mean the same.
 */
import { escapeBytes, unescapeBytes } from '../corpus.mjs'
import { chance } from '../grammar.mjs'
import { mutate } from '../mutate.mjs'

const FILE = 'bus.json'
const OPTIONS = { environment: { HOME: '/home/ada', SET: 'value' }, cwd: '/srv' }
const RECENT = 64

const one =
  (...values) =>
  (random) =>
    random.pick(values)
const listOf =
  (make, most = 2) =>
  (random) =>
    Array.from({ length: random.between(0, most) }, () => make(random))
const number = one(0, 1, 2, 5, 60, 1024, 1_048_576)
const flag = one(true, false)
// biome-ignore lint/suspicious/noTemplateCurlyInString: the file spells its references so
const text = one('a', 'cat', './x', '${SET}', '${UNSET}', '$${SET}', 'x y', '', 'ж', '😀', '\u0000', '\u001b[31m', '${')
const url = one('http://h/', 'https://h:1/v1', 'ftp://h', 'http://', 'http://u:p@h/', 'h')
const path = one('s.sock', '/s', './d/s', '', '~/s', 'x'.repeat(110))
const address = one('127.0.0.1:0', '[::1]:7400', 'localhost:1', ':1', '127.0.0.1', 'h:99999', '[::1:0')
const poolId = one('a', 'b', 'c', 'a', 'bus', '', 'x'.repeat(129))

const limits = {
  ...{ max_input_buffer: number, max_output_queue: number, max_restarts: number, restart_window_sec: number },
  ...{ drain_timeout_sec: number, backpressure_timeout_sec: number, max_clients: number, request_timeout_sec: number },
  ...{ max_sessions_per_client: number, max_pending_per_client: number, max_total_buffer: number },
  ...{ blocking_timeout_sec: number, half_close_timeout_sec: number },
}
const agentParts = {
  ...{ method_style: one('namespaced', 'bare'), modalities: listOf(one('text', 'image', 'smell')) },
  ...{ timeout_ms: number, max_payload_bytes: number },
}
const pool = {
  ...{ id: poolId, command: text, agent: one('openai', 'registry', 'echo'), registry: one('gemini', '-') },
  ...{ distribution: one('binary', 'npx', 'uvx'), args: listOf(text), instances: number, max_instances: number },
  ...{ sharing: one('shared', 'isolated', 'lease'), protocol: one('auto', 'plain', 'acp', 'mcp') },
  ...{
    era: one('auto', 'legacy', 'modern'),
    env: { A: text, __proto__x: text, _B: text },
    inherit_env: flag,
    cwd: path,
  },
  ...{ restart: one('always', 'on-failure', 'never'), start_timeout_sec: number, hang_timeout_sec: number },
  ...{ limits, trace: flag },
  aio: { type: one('stdio', 'mcp'), mode: one('ndjson', 'oneshot', 'json'), sampling: { tool: text }, ...agentParts },
}
const door = (key, make) => (random) =>
  chance(random, 0.6) ? make(random) : fill({ [key]: make, pool: poolId }, random)
const FILE_SHAPE = {
  default_pool: poolId,
  limits,
  listen: {
    unix: (random) => (chance(random, 0.5) ? door('path', path)(random) : listOf(door('path', path))(random)),
    tcp: (random) =>
      chance(random, 0.5) ? door('address', address)(random) : listOf(door('address', address))(random),
  },
  control: path,
  agents: listOf((random) =>
    fill({ name: poolId, type: one('http', 'sse'), endpoint: url, headers: { k: text }, ...agentParts }, random),
  ),
  aio: {
    store: { path, retention_days: number, payload_bytes: number, redact: listOf(text) },
    otlp: { endpoint: url, headers: { k: text }, payloads: flag, compat: flag },
    remote_queries: flag,
  },
  registry: { index: url, cache: path, ttl_sec: number, agents: path, credentials: path, idle_timeout_sec: number },
}
const NEEDED = new Set(['name', 'endpoint', 'path', 'address', 'tool'])
const WRONG = [null, 0.5, -1, '', 'x', true, [], {}, [[]], { id: 1 }, 1e300, 'constructor', '__proto__', [null]]
const ODD_KEYS = [
  '_note',
  '$schema',
  'comand',
  '__proto__',
  'constructor',
  '',
  'pool',
  'instance',
  '\u202e',
  'toString',
]

/** Some of the keys of a shape, each with a value; now and then one that is wrong. */
function fill(shape, random, density = 0.3) {
  const entries = Object.entries(shape)
    .filter(([key]) => NEEDED.has(key) || chance(random, density))
    .map(([key, make]) => [key, typeof make === 'function' ? make(random) : fill(make, random)])
  if (chance(random, 0.03)) entries.push([random.pick(ODD_KEYS), random.pick(WRONG)])
  if (entries.length > 0 && chance(random, 0.03)) random.pick(entries)[1] = random.pick(WRONG)
  return Object.fromEntries(entries)
}

/** Mostly what runs; else any of the keys, whether they go together or not. */
function makePool(random, index) {
  if (chance(random, 0.2)) return fill(pool, random)
  const { agent, registry, distribution, aio, id, command, ...options } = pool
  return { id: 'abc'[index], command: 'cat', ...fill(options, random, 0.1) }
}

function makeFile(random) {
  const pools = Array.from({ length: random.between(chance(random, 0.1) ? 0 : 1, 3) }, (_, index) =>
    makePool(random, index),
  )
  return { pools, ...fill(FILE_SHAPE, random, 0.2) }
}

const COMMENTS = ['// note', '/* note */', '/* " */', '// { [']

/** Comments after line ends and commas before closing brackets change nothing (contract 4.1.1). */
function decorate(json, random) {
  return json
    .split('\n')
    .map((line) => (chance(random, 0.2) ? `${line} ${random.pick(COMMENTS)}` : line))
    .join(chance(random, 0.2) ? '\r\n' : '\n')
    .replace(/([\]}"\d])(\s*\n\s*[\]}])/g, (all, value, close) => (chance(random, 0.2) ? `${value},${close}` : all))
}

export async function configTarget(program) {
  const [{ parseConfig }, { formatProblems }] = await Promise.all([
    program.load('config/read.js'),
    program.load('config/report.js'),
  ])
  const recent = []

  function generate(random) {
    const plain = JSON.stringify(makeFile(random), null, random.pick([0, 1, 2, '\t']))
    const whole = chance(random, 0.5) ? decorate(plain, random) : plain
    recent[random.between(0, RECENT - 1) % (recent.length + 1)] = Buffer.from(whole)
    if (chance(random, 0.65)) return whole
    if (chance(random, 0.005)) return random.pick(['[', '{"a":', '/*', '{"pools":[']).repeat(random.between(60, 70_000))
    return mutate(Buffer.from(whole), random, random.pick(recent)).toString()
  }

  const read = (source) => parseConfig(FILE, source, OPTIONS)

  function checkProblems(source, problems) {
    if (problems.length === 0) return 'silent: refused without a problem'
    const lines = source.split('\n').length
    for (const { severity, file, line, column, found, allowed } of problems) {
      if (file !== FILE || severity !== 'error') return `problem: ${severity} in ${file}`
      const isPlaced = Number.isInteger(line) && Number.isInteger(column) && line >= 0 && line <= lines
      if (!isPlaced || column < 0 || (line > 0 && column < 1)) return `place: ${line}:${column} of ${lines} lines`
      if (line === 0 && problems.length > 1) return 'place: a problem of the whole file among others'
      if (!found || !allowed) return `words: found "${found}", allowed "${allowed}"`
    }
    const shown = formatProblems(problems)
    return /[^\P{Cc}\n]/u.test(shown) ? `terminal: a control character is shown: ${JSON.stringify(shown)}` : undefined
  }

  function checkLayouts({ config, source }) {
    const meant = JSON.stringify(config)
    for (const layout of [0, 2]) {
      const again = read(JSON.stringify(source.value, null, layout))
      if (!again.ok) return `layout: refused at indent ${layout}: ${again.problems[0]?.found}`
      if (JSON.stringify(again.config) !== meant) return `layout: it means something else at indent ${layout}`
    }
    const commented = read(`// c\n${JSON.stringify(source.value, null, 1).replaceAll('\n', ' /* " */\n')}\n//`)
    return commented.ok && JSON.stringify(commented.config) === meant ? undefined : 'layout: comments change it'
  }

  return {
    name: 'config',
    generate,
    check: (source) => {
      const reading = read(source)
      return reading.ok ? checkLayouts(reading) : checkProblems(source, reading.problems)
    },
    kindOf: (source) => (read(source).ok ? 'accepted' : 'refused'),
    partsOf: (source) => [...source],
    fromParts: (parts) => parts.join(''),
    encode: (source) => escapeBytes(Buffer.from(source)),
    decode: (line) => [unescapeBytes(line).toString()],
  }
}
