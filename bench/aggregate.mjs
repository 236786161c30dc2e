/**
 * What an aggregate costs (contract 13): a call through it beside the same call at its pool, a list and a search of a
 * thousand tools beside a ping, lists while members are dead or silent beside lists without them, and the first words of an
 * agent called by name beside its first update through the bus. Both sides of a row take turns; only ratios count.
 *
 * node bench/aggregate.mjs [--quick] [--program FILE]
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../test/support/options.mjs'
import { cpuSeconds } from './process-figures.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MEMBER = join(ROOT, 'bench/aggregate-member.mjs')
const AGENT = join(ROOT, 'bench/aggregate-agent.mjs')
const USAGE = `usage: node bench/aggregate.mjs [--quick] [--program FILE]: what one MCP server made of many costs (contract 13)

  --quick         short rounds
  --program FILE  another build than dist/cli/main.js`

const options = readOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  program: { type: 'string', default: join(ROOT, 'dist/cli/main.js') },
})
const ROUNDS = options.quick ? 3 : 7
const CALLS = options.quick ? 1_500 : 5_000
const LIST_WAIT_MS = 1_000
const FIRST_TOKEN_MS = 5

const rows = []
const report = (name, figure, bound, isReached) => {
  rows.push({ name, figure, bound, isReached })
  console.log(`${isReached ? 'reached' : 'MISSED '}  ${name}: ${figure}   (to reach: ${bound})`)
}
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]
const atMost = (name, ratio, bound) => report(name, ratio.toFixed(2), `<= ${bound}`, ratio <= bound)

/** A client of lines: one request after the other. */
class Client {
  #held = []
  #waiting
  #id = 0

  constructor(path, pool) {
    this.socket = connect(path)
    this.socket.on('data', (chunk) => this.#take(chunk))
    this.socket.write(`{"method":"bus::open","params":{"pool":${JSON.stringify(pool)}}}\n`)
  }

  #take(chunk) {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const line = this.#held.length === 0 ? chunk.subarray(start, end) : this.#join(chunk.subarray(start, end))
      start = end + 1
      // What is told unasked has no id.
      if (line.subarray(0, 30).includes('"method"')) this.firstAtMs ??= performance.now()
      else this.#waiting?.(line)
    }
    if (start < chunk.length) this.#held.push(chunk.subarray(start))
  }

  #join(end) {
    const line = Buffer.concat([...this.#held, end])
    this.#held = []
    return line
  }

  ask(method, params, more = {}) {
    const id = ++this.#id
    const line = `${JSON.stringify({ jsonrpc: '2.0', id, method, ...(params && { params }), ...more })}\n`
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.socket.write(line)
    })
  }

  /** How long it takes until something is told, in milliseconds; the answer is awaited too. */
  async first(method, params, more) {
    this.firstAtMs = undefined
    const begun = performance.now()
    await this.ask(method, params, more)
    return this.firstAtMs - begun
  }

  /** The list of tools, once all members are listed. */
  async listed() {
    for (;;) {
      const list = await this.ask('tools/list')
      if (list.includes('"result"') && !list.includes('stdio-bus/missing')) return list
      await sleep(100)
    }
  }

  async greet() {
    const clientInfo = { name: 'bench', version: '1' }
    await this.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
    this.socket.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    return this
  }

  /** The times of so many requests, one after the other, in milliseconds. */
  async times(count, method, params) {
    const times = []
    for (let n = 0; n < count; n++) {
      const begun = performance.now()
      await this.ask(method, params)
      times.push(performance.now() - begun)
    }
    return times
  }
}

async function withBus(config, run) {
  const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-bench-'))
  const file = join(folder, 'bus.json')
  const path = join(folder, 'bus.sock')
  writeFileSync(file, JSON.stringify(config))
  const args = [options.program, '--config', file, '--unix', path, '--control', join(folder, 'control.sock')]
  const bus = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: folder },
  })
  try {
    await new Promise((resolve, reject) => {
      let log = ''
      bus.stderr.on('data', (chunk) => {
        log += chunk
        if (log.includes('"ready"')) resolve()
      })
      bus.once('exit', () => reject(new Error(`the bus ended: ${log}`)))
    })
    return await run(path, bus.pid)
  } finally {
    bus.kill('SIGTERM')
    await new Promise((resolve) => bus.once('exit', resolve))
    rmSync(folder, { recursive: true, force: true })
  }
}

const member = (id, spec) => ({ id, command: process.execPath, args: [MEMBER, JSON.stringify(spec)], protocol: 'mcp' })

async function calls() {
  const config = { pools: [member('files', { count: 20 }), { id: 'all', members: ['files'] }] }
  await withBus(config, async (path, pid) => {
    const through = await new Client(path, 'all').greet()
    const direct = await new Client(path, 'files').greet()
    await through.listed()
    const sides = [
      { client: through, name: 'files_tool_1', cpu: [], p50: [] },
      { client: direct, name: 'tool_1', cpu: [], p50: [] },
    ]
    for (const { client, name } of sides)
      await client.times(500, 'tools/call', { name, arguments: { a: 'x'.repeat(100) } })
    for (let round = 0; round < ROUNDS; round++)
      for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
        const before = cpuSeconds(pid)
        const times = await side.client.times(CALLS, 'tools/call', {
          name: side.name,
          arguments: { a: 'x'.repeat(100) },
        })
        side.cpu.push(cpuSeconds(pid) - before)
        side.p50.push(median(times))
      }
    const ratio = (key) => median(sides[0][key].map((value, n) => value / sides[1][key][n]))
    const each = sides.map(({ cpu }) => `${((1e6 * median(cpu)) / CALLS).toFixed(1)} µs`)
    console.log(`         (CPU of the bus for a call: ${each.join(' through the aggregate, ')} at its pool)`)
    atMost('a call through the aggregate, CPU of the bus against its pool', ratio('cpu'), 1.5)
    atMost('a call through the aggregate, p50 against its pool', ratio('p50'), 1.3)
  })
}

async function lists() {
  const many = Array.from({ length: 4 }, (_, n) => member(`m${n}`, { count: 250 }))
  const members = many.map(({ id }) => id)
  const config = { pools: [...many, { id: 'all', members }, { id: 'find', members, mode: 'search' }] }
  await withBus(config, async (path) => {
    const all = await new Client(path, 'all').greet()
    const find = await new Client(path, 'find').greet()
    const everything = await all.listed()
    const found = await find.listed()
    const query = { name: 'find_tools', arguments: { query: 'write the invoice of a customer' } }
    for (let n = 0; n < 30; n++) await find.ask('tools/call', query)
    const figures = { list: [], search: [] }
    for (let round = 0; round < ROUNDS; round++) {
      const ping = median(await all.times(300, 'ping'))
      figures.list.push(median(await all.times(100, 'tools/list')) / ping)
      figures.search.push(median(await find.times(100, 'tools/call', query)) / median(await find.times(300, 'ping')))
    }
    console.log(`         (1,000 tools are ${everything.length} bytes)`)
    atMost('1,000 tools listed from memory, p50 against a ping', median(figures.list), 5)
    atMost('find_tools over 1,000 tools, p50 against a ping', median(figures.search), 5)
    atMost('the list in search mode, bytes against all', found.length / everything.length, 1 / 20)
  })
}

/** Ten members, of which one is dead and one never answers. */
async function absent() {
  const good = Array.from({ length: 8 }, (_, n) => member(`m${n}`, { count: 20 }))
  const bad = [{ id: 'dead', command: '/nowhere', protocol: 'mcp' }, member('silent', { count: 20, silent: true })]
  const pool = (id, members) => ({ id, members: members.map((each) => each.id), list_wait_ms: LIST_WAIT_MS })
  const config = { pools: [...good, ...bad, pool('all', [...good, ...bad]), pool('well', good)] }
  await withBus(config, async (path) => {
    const all = await new Client(path, 'all').greet()
    const begun = performance.now()
    await all.ask('tools/list')
    atMost(
      'the first list with one dead and one silent of ten, against list_wait_ms',
      (performance.now() - begun) / LIST_WAIT_MS,
      1.1,
    )
    const well = await new Client(path, 'well').greet()
    await well.listed()
    const ratios = []
    for (let round = 0; round < ROUNDS; round++)
      ratios.push(median(await all.times(200, 'tools/list')) / median(await well.times(200, 'tools/list')))
    atMost('later lists with them, p50 against lists without', median(ratios), 1.2)
  })
}

const ONE_TOKEN = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'word' } }] })}\n\ndata: [DONE]\n\n`

/** The OpenAI agent with a model that is as fast as none is; and an agent that does nothing, which shows what calling by name costs. */
async function words() {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().on('end', async () => {
      await sleep(FIRST_TOKEN_MS)
      const isChat = incoming.method === 'POST'
      outgoing.writeHead(isChat ? 200 : 404, { 'content-type': 'text/event-stream' }).end(isChat ? ONE_TOKEN : '')
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const env = { OPENAI_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, OPENAI_MODEL: 'm' }
  const aio = { type: 'acp' }
  const openai = { id: 'openai', agent: 'openai', env, aio }
  const idle = { id: 'idle', command: process.execPath, args: [AGENT], aio }
  await withBus({ pools: [openai, idle] }, async (path) => {
    const { ratio } = await compareWords(path, 'openai')
    const what = `of the OpenAI agent by name, whose model takes ${FIRST_TOKEN_MS} ms`
    atMost(`first words ${what}, against its first update through the bus`, ratio, 1.3)
    const { more } = await compareWords(path, 'idle')
    console.log(`         (a call by name takes ${(1000 * more).toFixed(0)} µs more than a prompt)`)
  })
  server.close()
}

/** From the prompt to the first words, by name and as a client of the pool, both in a session that is there. */
async function compareWords(path, pool) {
  const direct = new Client(path, pool)
  await direct.ask('initialize', { protocolVersion: 1, clientCapabilities: {} })
  const { sessionId } = JSON.parse(await direct.ask('session/new', { cwd: '/', mcpServers: [] })).result
  const named = new Client(path, pool)
  const sides = [
    () => named.first(`${pool}::input`, { inputs: [{ type: 'text', value: 'x' }] }, { sessionId: 'mine' }),
    () => direct.first('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'x' }] }),
  ]
  const rounds = []
  for (let round = 0; round <= ROUNDS; round++) {
    const medians = []
    for (const once of sides) {
      const times = []
      for (let n = 0; n < CALLS / 50; n++) times.push(await once())
      medians.push(median(times))
    }
    // The first round is for warming up.
    if (round > 0) rounds.push({ ratio: medians[0] / medians[1], more: medians[0] - medians[1] })
  }
  const medianOf = (key) => median(rounds.map((each) => each[key]))
  return { ratio: medianOf('ratio'), more: medianOf('more') }
}

for (const measure of [calls, lists, absent, words]) await measure()
await sleep(0)
const missed = rows.filter(({ isReached }) => !isReached)
console.log(missed.length === 0 ? 'all reached' : `${missed.length} missed`)
