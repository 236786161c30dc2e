/**
 * What sessions that outlive their clients cost (contract 12): the journal beside the same pool without it, a replay beside the
 * live rate, a thousand detached sessions, observers who read and one who does not, and a hundred clients that come and go in
 * the middle of a turn. Both sides of a row take turns; only ratios count.
 *
 * node bench/sessions.mjs [--quick] [--program FILE]
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../test/support/options.mjs'
import { cpuSeconds, rssMib } from './process-figures.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const AGENT = join(ROOT, 'bench/sessions-agent.mjs')
const USAGE = `usage: node bench/sessions.mjs [--quick] [--program FILE]: what sessions that outlive their clients cost (contract 12)

  --quick         short rounds
  --program FILE  another build than dist/cli/main.js`

const options = readOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  program: { type: 'string', default: join(ROOT, 'dist/cli/main.js') },
})
const ROUNDS = options.quick ? 3 : 7
const UPDATES = 10_000
const DETACHED = 1_000
const OBSERVERS = 31
const VISITORS = 100
const KIB_OF_MIB = 1_024

const rows = []
const report = (name, figure, bound, isReached) => {
  rows.push({ name, figure, bound, isReached })
  console.log(`${isReached ? 'reached' : 'MISSED '}  ${name}: ${figure}   (to reach: ${bound})`)
}
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]
const atMost = (name, figure, bound, unit = '') =>
  report(name, `${figure.toFixed(2)}${unit}`, `<= ${bound}${unit}`, figure <= bound)
const atLeast = (name, figure, bound) => report(name, figure.toFixed(2), `>= ${bound}`, figure >= bound)

/** A client of lines that looks at as little as it can: answers are found by their first bytes, updates are counted. */
class Client {
  #held = []
  #waiting = new Map()
  #id = 0
  updates = 0
  /** Told of every line that is no answer. */
  onLine = () => {}

  constructor(path, pool) {
    this.socket = connect(path)
    this.socket.on('error', () => {})
    this.socket.on('data', (chunk) => this.#take(chunk))
    if (pool !== undefined) this.say({ method: 'bus::open', params: { pool } })
  }

  #take(chunk) {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const piece = chunk.subarray(start, end)
      const line = this.#held.length === 0 ? piece : Buffer.concat([...this.#held.splice(0), piece])
      start = end + 1
      if (line.subarray(16, 26).includes('"id"')) this.#answered(JSON.parse(line))
      else {
        this.updates++
        this.onLine(line)
      }
    }
    if (start < chunk.length) this.#held.push(chunk.subarray(start))
  }

  #answered(message) {
    this.#waiting.get(message.id)?.(message)
    this.#waiting.delete(message.id)
  }

  say(message) {
    this.socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  ask(method, params) {
    const id = ++this.#id
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.socket.write(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${JSON.stringify(params)}}\n`)
    })
  }

  async greet() {
    await this.ask('initialize', { protocolVersion: 1, clientCapabilities: {} })
    return this
  }

  async open() {
    return (await this.ask('session/new', { cwd: '/', mcpServers: [] })).result.sessionId
  }

  prompt(sessionId, text) {
    return this.ask('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
  }

  load(sessionId) {
    return this.ask('session/load', { sessionId, cwd: '/', mcpServers: [] })
  }

  leave() {
    this.socket.destroy()
  }
}

async function withBus(pools, run) {
  const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-bench-'))
  const file = join(folder, 'bus.json')
  const path = join(folder, 'bus.sock')
  writeFileSync(file, JSON.stringify({ pools, store: { path: 'store.db' } }))
  const args = [options.program, '--config', file, '--unix', path, '--control', join(folder, 'control.sock')]
  const stdio = ['ignore', 'ignore', 'pipe']
  const bus = spawn(process.execPath, ['--expose-gc', ...args], { stdio, env: { ...process.env, HOME: folder } })
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

const pool = (id, sessions) => ({
  id,
  command: process.execPath,
  args: [AGENT],
  protocol: 'acp',
  ...(sessions && { sessions }),
})
const KEPT = { keep_sec: 3_600, max_kept: 100_000 }

const timed = async (act) => {
  const begun = performance.now()
  await act()
  return performance.now() - begun
}

/** The same turns in a pool that keeps its sessions and in one that does not. */
async function journal() {
  await withBus([pool('kept', KEPT), pool('plain')], async (path, pid) => {
    const sides = []
    for (const name of ['kept', 'plain']) {
      const client = await new Client(path, name).greet()
      sides.push({ client, session: await client.open() })
    }
    const streamed = await compareCpu(sides, pid, '1000 each')
    atMost('the journal, CPU of the bus for a line that comes by itself, against none', streamed.ratio, 1.3)
    const burst = await compareCpu(sides, pid, '1000')
    console.log(`         (lines that come a thousand at once: ${burst.ratio.toFixed(2)}; ${burst.each})`)
    console.log(`         (lines that come one by one: ${streamed.each})`)
  })
}

async function compareCpu(sides, pid, text) {
  const cpu = sides.map(() => [])
  for (let round = -1; round < ROUNDS; round++)
    for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const { client, session } = sides[index]
      const before = cpuSeconds(pid)
      for (let n = 0; n < 10; n++) await client.prompt(session, text)
      // What is written down is written in the next moments.
      await sleep(300)
      if (round >= 0) cpu[index].push(cpuSeconds(pid) - before)
    }
  const [kept, plain] = cpu.map((seconds) => `${((1e6 * median(seconds)) / 10_000).toFixed(1)} µs`)
  return {
    ratio: median(cpu[0].map((seconds, n) => seconds / cpu[1][n])),
    each: `${kept} with a journal, ${plain} without`,
  }
}

async function replay() {
  await withBus([pool('kept', KEPT)], async (path) => {
    const driver = await new Client(path).greet()
    const ratios = []
    for (let round = -1; round < ROUNDS; round++) {
      const session = await driver.open()
      const liveMs = await timed(() => driver.prompt(session, String(UPDATES)))
      await sleep(300)
      const reader = await new Client(path).greet()
      const replayMs = await timed(() => reader.load(session))
      if (reader.updates < UPDATES) throw new Error(`only ${reader.updates} updates were told again`)
      reader.leave()
      if (round >= 0) ratios.push(liveMs / replayMs)
    }
    atLeast(`a replay of ${UPDATES} updates, its rate against the live one`, median(ratios), 0.5)
  })
}

/** What others feel of a thousand sessions that nobody attends, and what each takes. */
async function detached() {
  await withBus([pool('kept', KEPT)], async (path, pid) => {
    const other = await new Client(path).greet()
    const session = await other.open()
    const p50 = async () => {
      const times = []
      for (let n = 0; n < 400; n++) times.push(await timed(() => other.prompt(session, '1')))
      return median(times)
    }
    // What a bus comes to by itself is not what the sessions take.
    for (let n = 0; n < 15; n++) await p50()
    const before = median([await p50(), await p50(), await p50()])
    await makeDetached(path, DETACHED)
    const after = median([await p50(), await p50(), await p50()])
    atMost(`${DETACHED} detached idle sessions, p50 of others against none`, after / before, 1.1)
    const growths = []
    for (let batch = 0; batch < 4; batch++) {
      const held = await restingRss(pid)
      await makeDetached(path, DETACHED)
      growths.push(((await restingRss(pid)) - held) * (KIB_OF_MIB / DETACHED))
    }
    atMost(`${DETACHED} more detached idle sessions, memory of each`, Math.max(0, median(growths)), 4, ' KiB')
  })
}

async function makeDetached(path, count) {
  const client = await new Client(path).greet()
  for (let n = 0; n < count; n++) await client.prompt(await client.open(), '1')
  client.leave()
  await sleep(200)
}

async function restingRss(pid) {
  const values = []
  for (let n = 0; n < 5; n++) {
    await sleep(200)
    values.push(rssMib(pid))
  }
  return Math.min(...values)
}

async function observers() {
  await withBus([pool('kept', KEPT)], async (path) => {
    const driver = await new Client(path).greet()
    const session = await driver.open()
    const turn = async () => {
      const times = []
      for (let n = 0; n < 5; n++) times.push(await timed(() => driver.prompt(session, '1000')))
      return median(times)
    }
    const look = async (reads) => {
      const client = new Client(path)
      await client.ask('bus::sessions.attach', { session, role: 'observe' })
      // The load generator is not to be what is measured.
      client.socket.removeAllListeners('data')
      if (reads) client.socket.resume()
      else client.socket.pause()
      return client
    }
    const compare = async (count, reads) => {
      const ratios = []
      for (let round = -1; round < ROUNDS; round++) {
        const alone = await turn()
        const watchers = []
        for (let n = 0; n < count; n++) watchers.push(await look(reads))
        const watched = await turn()
        for (const watcher of watchers) watcher.leave()
        await sleep(100)
        if (round >= 0) ratios.push(watched / alone)
      }
      return median(ratios)
    }
    atMost(`${OBSERVERS} observers, the driver's turn against alone`, await compare(OBSERVERS, true), 2)
    atMost("one that never reads, the driver's turn against alone", await compare(1, false), 1.1)
  })
}

/** Everybody counts: what it was told is the beginning of what was said, and the last has all of it. */
async function visitors() {
  await withBus([pool('kept', KEPT)], async (path) => {
    const first = await new Client(path).greet()
    const session = await first.open()
    const count = 2_000
    void first.prompt(session, `${count} every 1`)
    let [missing, doubled] = [0, 0]
    const visit = async (isLast) => {
      const client = await new Client(path).greet()
      let next = 0
      client.onLine = (line) => {
        const found = /"text":"(\d+) x/.exec(line)
        if (found === null) return
        const n = Number(found[1])
        if (n > next) missing += n - next
        if (n < next) doubled++
        next = Math.max(next, n + 1)
      }
      await client.load(session)
      if (isLast) while (next < count) await sleep(20)
      client.leave()
    }
    await sleep(100)
    first.leave()
    for (let n = 0; n < VISITORS; n += 4) {
      await Promise.all([visit(), visit(), visit(), visit()])
      await sleep(10)
    }
    await visit(true)
    const asking = await new Client(path).greet()
    await asking.load(session)
    const { loads } = (await asking.prompt(session, '1')).result
    const figure = `${missing} missing, ${doubled} doubled, ${loads} loads at the agent`
    report(`${VISITORS} clients that come and go in mid-turn`, figure, 'none', missing + doubled + loads === 0)
  })
}

for (const measure of [journal, replay, detached, observers, visitors]) await measure()
const missed = rows.filter(({ isReached }) => !isReached)
console.log(missed.length === 0 ? 'all reached' : `${missed.length} missed`)
