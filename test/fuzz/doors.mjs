/**
 * Fuzzes the doors of the real program: lines that are almost right at a Unix socket, at TCP and on stdin.
 *
 * Every request that can be read must be answered once with its id; what closes a connection must say so first; nobody else
 * may notice; and at the end the bus stops cleanly, having said nothing that looks like a crash.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const ECHO = fileURLToPath(new URL('../fixtures/workers/echo.mjs', import.meta.url))
const BATCH = 50
const AT_ONCE = 8
const PATIENCE_MS = 20_000

/** `draw(chance)` makes a line, `judge(bytes)` says what it is. */
export async function fuzzDoor(door, { draw, judge, Chance }, seed, count) {
  const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-fuzz-'))
  const run = { door, draw, judge, chance: new Chance(seed), folder, judged: 0 }
  try {
    writeFileSync(join(folder, 'stdio-bus.json'), JSON.stringify(CONFIG))
    if (door === 'stdio') await fuzzStdio(run, count)
    else await fuzzSocket(run, count)
    return run.judged
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const CONFIG = {
  pools: [{ id: 'a', command: process.execPath, args: [ECHO], instances: 2 }],
  limits: { max_sessions_per_client: 1_000_000, max_pending_per_client: 100_000, half_close_timeout_sec: 10 },
}

function startBus({ folder }, flags) {
  const args = [PROGRAM, 'serve', '--config', join(folder, 'stdio-bus.json'), '--control', join(folder, 'c'), ...flags]
  const child = spawn(process.execPath, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: folder },
  })
  const bus = { child, log: '' }
  child.stderr.setEncoding('latin1').on('data', (text) => {
    bus.log += text
  })
  bus.exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve({ code, signal })))
  return bus
}

async function until(isTrue, what) {
  const endMs = performance.now() + PATIENCE_MS
  while (!isTrue()) {
    if (performance.now() > endMs) throw new Error(`${what} did not happen within ${PATIENCE_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function demandQuiet({ log }) {
  const crash = /(TypeError|RangeError|ReferenceError|AssertionError|\n\s+at .*\.js:\d+)/.exec(log)
  if (crash !== null)
    throw new Error(`the bus crashed: ${log.slice(Math.max(0, crash.index - 500), crash.index + 1000)}`)
}

async function fuzzSocket(run, count) {
  const flags = run.door === 'unix' ? ['--unix', join(run.folder, 's')] : ['--tcp', '127.0.0.1:0']
  const bus = startBus(run, flags)
  await until(() => bus.log.includes('"addresses"'), 'ready')
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(bus.log)?.[1])
  const open = () => (run.door === 'unix' ? connect(join(run.folder, 's')) : connect(port, '127.0.0.1'))
  const keepOn = async () => {
    while (run.judged < count) await converse(run, open(), open())
  }
  await Promise.all(Array.from({ length: AT_ONCE }, keepOn))
  demandQuiet(bus)
  bus.child.kill('SIGTERM')
  const { code } = await bus.exited
  if (code !== 0) throw new Error(`the bus ended with ${code}: ${bus.log.slice(-2000)}`)
}

async function fuzzStdio(run, count) {
  while (run.judged < count) {
    const bus = startBus(run, ['--stdio'])
    await until(() => bus.log.includes('"addresses"'), 'ready')
    await converse(run, { input: bus.child.stdout, output: bus.child.stdin }, undefined)
    const { code } = await bus.exited
    demandQuiet(bus)
    if (code !== 0) throw new Error(`the bus ended with ${code}: ${bus.log.slice(-2000)}`)
  }
}

/** One connection until something closes it, with a bystander who must not notice. */
async function converse(run, stream, bystander) {
  const input = stream.input ?? stream
  const output = stream.output ?? stream
  let heard = ''
  let isClosed = false
  output.on('error', () => {})
  input.setEncoding('latin1').on('data', (text) => {
    heard += text
  })
  input
    .on('error', () => {})
    .on('close', () => {
      isClosed = true
    })
  const { lines, expected, isFatal } = drawConversation(run)
  output.write(Buffer.from(lines.map((line) => `${line}\n`).join(''), 'latin1'))
  output.end()
  await until(() => isClosed, `the end of a connection with ${JSON.stringify(lines.slice(-3))}`)
  compare(heard, expected, isFatal, lines)
  if (bystander !== undefined) await demandService(bystander)
}

/** Lines up to the first that closes the connection, and what must be answered. */
function drawConversation(run) {
  const lines = []
  const expected = new Map()
  const wanted = run.door === 'stdio' ? BATCH * 10 : BATCH
  let isFatal = false
  while (lines.length < wanted && !isFatal) {
    // The worker of this test takes a bare carriage return for the end of a line.
    const line = run.draw(run.chance).replaceAll('\r', ' ')
    if (line.includes('\n')) continue
    const bytes = Buffer.from(line, 'latin1')
    const { shape, idRaw } = run.judge(bytes)
    isFatal = isClosing(line, shape, bytes)
    // At stdin what closes the connection ends the program: most of it is left out.
    if (isFatal && run.door === 'stdio' && !run.chance.is(0.0002)) {
      isFatal = false
      continue
    }
    lines.push(line)
    run.judged++
    if (shape === 'request' && !isFatal) expected.set(keyOf(idRaw), (expected.get(keyOf(idRaw)) ?? 0) + 1)
  }
  return { lines, expected, isFatal }
}

function isClosing(line, shape, bytes) {
  if (line.trim() === '' && /^[ \t\r]*$/.test(line)) return false
  if (shape === 'notJson' || shape === 'bad') return true
  if (shape === 'response') return false
  const { params, method } = JSON.parse(bytes.toString())
  const session = params !== null && typeof params === 'object' && !Array.isArray(params) ? params.sessionId : undefined
  if (session !== undefined && (typeof session !== 'string' || JSON.stringify(session).length > 1026)) return true
  return method === 'bus::open'
}

function keyOf(idRaw) {
  const value = JSON.parse(idRaw)
  return typeof value === 'string' ? JSON.stringify(value) : String(Number(value))
}

function compare(heard, expected, isFatal, lines) {
  const answered = new Map()
  let faults = 0
  for (const line of heard.split('\n').filter(Boolean)) {
    const message = JSON.parse(Buffer.from(line, 'latin1').toString())
    const reason = message.error?.data?.reason
    if (reason === 'not_json' || reason === 'bad_envelope') faults++
    else if ('id' in message && message.method === undefined) {
      const key = typeof message.id === 'string' ? JSON.stringify(message.id) : String(message.id)
      answered.set(key, (answered.get(key) ?? 0) + 1)
    }
  }
  const about = () => `\nsent: ${JSON.stringify(lines)}\nheard: ${heard}`
  if (faults !== (isFatal ? 1 : 0)) throw new Error(`${faults} faults were told, ${isFatal ? 1 : 0} expected${about()}`)
  for (const [id, count] of expected) {
    if (answered.get(id) !== count)
      throw new Error(`id ${id}: ${answered.get(id) ?? 0} answers to ${count} requests${about()}`)
    answered.delete(id)
  }
  if (answered.size > 0) throw new Error(`answers to nothing: ${[...answered.keys()]}${about()}`)
}

/** Somebody else is served as if nothing had happened. */
async function demandService(socket) {
  let heard = ''
  socket.setEncoding('utf8').on('data', (text) => {
    heard += text
  })
  socket.write('{"jsonrpc":"2.0","id":"bystander","method":"echo"}\n')
  await until(() => heard.includes('\n'), 'the answer for a bystander')
  socket.destroy()
  if (JSON.parse(heard).id !== 'bystander') throw new Error(`a bystander heard ${heard}`)
}
