/**
 * `npm run fuzz:admission`: hostile first lines and credentials at the door of a bus with `access`, on this machine only.
 *
 * Nobody may come in, no worker may hear of it, what the bus still holds after a collection must not grow, and a client that
 * has proved who it is is served meanwhile. Exit 1 when one of these does not hold; `--seed N` repeats a run.
 */
import { createHash, createHmac, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Bus } from '../chaos/stage/bus.mjs'
import { descriptorsOf } from '../chaos/stage/processes.mjs'
import { Random } from '../chaos/stage/random.mjs'
import { eventually, sleep } from '../chaos/stage/waiting.mjs'
import { INSPECTED, readHeap } from '../soak/heap.mjs'
import { readOptions } from '../support/options.mjs'

const USAGE = `usage: npm run fuzz:admission [-- options]: hostile first lines and credentials at a bus with access, on loopback only

  --seed N   repeats a run
  --count N  how many hostile connections (100,000)
  --crowd N  how many silent ones at once (2,000)

Exit 1 when somebody came in, a worker heard of it, memory grew, or a good client was not served.`

const values = readOptions(USAGE, {
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  count: { type: 'string', default: '100000' },
  crowd: { type: 'string', default: '2000' },
})
const [seed, count, crowd] = [values.seed, values.count, values.crowd].map(Number)
if (![seed, count, crowd].every((number) => Number.isSafeInteger(number) && number >= 0)) {
  console.error(USAGE)
  process.exit(2)
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Fewer than the system lets wait at a door: what it drops there the bus never sees. */
const AT_ONCE = 480
const VISIT_MS = 9_000
/** When the heap is looked at, after everything that nobody holds was collected: the first look is what the last is held to. */
const LOOKS = [0.3, 0.6, 1]
const MOST_GROWTH = 1.1
/** Blocks that have been written are kept for the next time, up to this. */
const SPARE_MIB = 1
/** Beside it the runtime keeps pages that it may use again. */
const MAX_RSS_GROWTH_MIB = 48
const SETTLING_MS = 1_500
const GOOD_PAUSE_MS = 5
const HOSTILE_WORD = 'of-a-hostile-client'
const random = new Random(seed)
const folder = mkdtempSync(join(tmpdir(), 'sb-adm-'))

// ---- the bus, its issuer and its principals ----

const digest = (text) => createHash('sha256').update(text).digest('hex')
const { makeToken } = await import(new URL('../../dist/access/token.js', import.meta.url).href)
const [good, other] = [makeToken(), makeToken()]
const issuerKeys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const forgerKeys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const jwk = { ...issuerKeys.publicKey.export({ format: 'jwk' }), kid: 'known', alg: 'ES256', use: 'sig' }
const server = createServer((_request, response) => response.end(JSON.stringify({ keys: [jwk] })))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const issuer = `http://127.0.0.1:${server.address().port}`

const principals = [
  { name: 'good', pools: ['*'], tokens: [{ sha256: digest(good) }] },
  { name: 'other', pools: ['*'], tokens: [{ sha256: digest(other) }] },
  { name: 'dev', pools: ['*'], tokens: [] },
]
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'access.json'), JSON.stringify({ principals }), { mode: 0o600 })
const worker = join(ROOT, 'test/fixtures/workers/raw-log.mjs')
const settings = {
  pools: [{ id: 'logging', command: process.execPath, args: [worker, 'heard'], instances: 1 }],
  limits: { max_clients: 5_000 },
  access: {
    file: 'access.json',
    audit: 'audit.log',
    oauth: { issuer, jwks_url: `${issuer}/keys`, audience: 'bus', map: [{ claim: 'sub', equals: 'dev', as: 'dev' }] },
  },
}
const bus = await Bus.start(join(ROOT, 'dist/cli/main.js'), folder, settings, { runtime: INSPECTED })
const port = Number(
  bus.addresses
    .find((address) => address.startsWith('tcp:'))
    .split(':')
    .at(-1),
)

// ---- what the hostile say ----

const base64url = (value) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const claims = (more = {}) => ({
  iss: issuer,
  aud: 'bus',
  sub: 'dev',
  exp: Math.floor(Date.now() / 1_000) + 600,
  ...more,
})
const es256 = (key, text) => sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
function jwt(head, body, signer) {
  const text = `${base64url(head)}.${base64url(body)}`
  return `${text}.${signer(text)}`
}
const HEAD = { alg: 'ES256', kid: 'known' }
const forged = (text) => es256(forgerKeys.privateKey, text)
const genuine = (text) => es256(issuerKeys.privateKey, text)
const changed = (token) => {
  const at = random.between(5, token.length - 1)
  return token.slice(0, at) + (token[at] === 'x' ? 'y' : 'x') + token.slice(at + 1)
}
const JWTS = [
  () => jwt(HEAD, claims(), forged),
  () => jwt({ alg: 'none' }, claims(), () => ''),
  () => jwt({ alg: 'None', kid: 'known' }, claims(), () => ''),
  () =>
    jwt({ alg: 'HS256', kid: 'known' }, claims(), (text) =>
      createHmac('sha256', JSON.stringify(jwk)).update(text).digest('base64url'),
    ),
  () => jwt({ ...HEAD, jwk: forgerKeys.publicKey.export({ format: 'jwk' }) }, claims(), forged),
  () => jwt({ ...HEAD, jku: 'http://127.0.0.1:1/keys' }, claims(), forged),
  () => jwt({ ...HEAD, kid: `../${random.between(0, 1e9)}` }, claims(), forged),
  () => jwt(HEAD, claims({ exp: 1 }), genuine),
  () => jwt(HEAD, claims({ exp: undefined }), genuine),
  () => jwt(HEAD, claims({ iss: `${issuer}/` }), genuine),
  () => jwt(HEAD, claims({ aud: ['other'] }), genuine),
  () => jwt(HEAD, claims({ sub: 'devil' }), genuine),
  () => jwt(HEAD, claims({ nbf: 4e9 }), genuine),
  () => jwt({ ...HEAD, crit: ['exp'] }, claims(), genuine),
  () => '..',
  () => `${'x'.repeat(4_000)}.${'y'.repeat(4_000)}.z`,
]
const TOKENS = [
  () => makeToken(),
  () => changed(good),
  () => good.slice(0, -1),
  () => `${good}x`,
  () => ` ${good}`,
  () => digest(good),
  () => 'good',
  () => 'local',
  () => '',
  () => random.pick(JWTS)(),
  () => random.pick(JWTS)(),
  () => '\u0000'.repeat(50),
]
const open = (token, more = '') =>
  `{"jsonrpc":"2.0","id":1,"method":"bus::open","params":{"token":${JSON.stringify(token)}${more}}}\n`
const call = () => `{"jsonrpc":"2.0","id":"c","method":"${HOSTILE_WORD}"}\n`
const nest = (depth) => '['.repeat(depth) + ']'.repeat(depth)

/** Each is what one connection sends, all at once. */
const KINDS = {
  'no token': () => call(),
  'a bad token': () => open(random.pick(TOKENS)()),
  'lines behind a bad token': () => open(random.pick(TOKENS)()) + call().repeat(random.between(1, 50)),
  'two tokens, both bad': () => open(makeToken(), `,"token":"${makeToken()}"`),
  'params twice': () =>
    `{"id":1,"method":"bus::open","params":{"token":"${makeToken()}"},"params":{"token":"${changed(good)}"}}\n`,
  'a good token in another place': () =>
    random.pick([
      `{"id":1,"method":"bus::open","token":"${good}"}\n`,
      `{"id":1,"method":"bus::open","params":["${good}"]}\n`,
      `{"id":1,"method":"bus::open","params":{"token":["${good}"]}}\n`,
      `{"id":1,"method":"bus::open","params":{"token":{"token":"${good}"}}}\n`,
      `{"id":1,"method":"bus::open","params":{"__proto__":{"token":"${good}"}}}\n`,
      `{"id":1,"method":"bus::Open","params":{"token":"${good}"}}\n`,
      `{"id":1,"method":"m","params":{"token":"${good}"}}\n`,
      `{"id":1,"result":{"token":"${good}"}}\n`,
      `[{"id":1,"method":"bus::open","params":{"token":"${good}"}}]\n`,
      `GET /?token=${good} HTTP/1.1\r\nAuthorization: Bearer ${good}\r\n\r\n`,
    ]),
  'a wrong type': () =>
    `{"id":1,"method":"bus::open","params":{"token":${random.pick(['1', 'null', 'true', '{}', '[]', '1e999'])}}}\n`,
  'a good token behind a bad line': () => random.pick([call(), 'x\n', '{}\n', open(makeToken())]) + open(good) + call(),
  'a principal by name': () =>
    `{"id":1,"method":"bus::open","params":{"principal":"good","role":"admin","subject":"dev"}}\n`,
  huge: () =>
    `{"id":1,"method":"bus::open","params":{"token":"${'x'.repeat(random.between(16_384, 200_000))}"}}\n${open(good)}`,
  deep: () => `{"id":1,"method":"bus::open","params":{"token":${nest(random.between(10, 8_000))}}}\n`,
  binary: () => Buffer.concat([randomBytes(random.between(1, 20_000)), Buffer.from('\n'), Buffer.from(call())]),
  cut: () => open(good).slice(0, random.between(1, 100)),
}
const NAMES = Object.keys(KINDS)

// ---- the visits ----

const findings = []
const tally = { visits: 0, refused: 0, silent: 0, left: 0, unheard: 0 }
const found = (what) => {
  if (findings.length < 10) findings.push(what)
}
const from = () => `127.0.${random.between(0, 3)}.${random.between(2, 250)}`

function visit(name) {
  const bytes = KINDS[name]()
  // Some leave before they are told, some say nothing more and wait, some end what they say.
  const manner = name === 'cut' ? random.pick(['end', 'leave']) : random.pick(['stay', 'stay', 'stay', 'end', 'leave'])
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from(), allowHalfOpen: true })
    let heard = ''
    const timer = setTimeout(() => {
      tally.unheard++
      socket.destroy()
    }, VISIT_MS)
    socket.on('connect', () => {
      socket.write(bytes)
      if (manner === 'end') socket.end()
      if (manner === 'leave') setImmediate(() => socket.destroy())
    })
    socket.setEncoding('latin1').on('data', (chunk) => {
      heard += chunk
    })
    socket.on('end', () => socket.end())
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      tally.visits++
      if (heard.includes('"result"')) found(`${name}: ${heard.slice(0, 300)}`)
      if (manner === 'leave') tally.left++
      else tally[heard === '' ? 'silent' : 'refused']++
      resolve()
    })
  })
}

async function visitors(total) {
  let begun = 0
  const go = async (_none, n) => {
    // All at once they would wait for the system, not for the bus.
    await sleep(n)
    while (begun < total) await visit(NAMES[begun++ % NAMES.length])
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, total) }, go))
}

/** How many connections the system has told that they are through, and dropped before a door: they never learn of it. */
function droppedBefore() {
  const [names, counts] = readFileSync('/proc/net/netstat', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('TcpExt:'))
    .map((line) => line.split(' '))
  return Number(counts[names.indexOf('ListenOverflows')])
}

/** Silent ones, more than there is room for: the oldest give way, and none stays beyond its time. */
async function flood(total) {
  const sockets = []
  const dropped = droppedBefore()
  for (let n = 0; n < total; n++) {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from() }).on('error', () => {})
    socket.resume()
    sockets.push(socket)
    if (n % 100 === 99) await sleep(5)
  }
  for (
    let waitedMs = 0;
    waitedMs < VISIT_MS && sockets.some(({ destroyed, closed }) => !destroyed && !closed);
    waitedMs += 100
  )
    await sleep(100)
  const left = sockets.filter(({ destroyed, closed }) => !destroyed && !closed)
  tally.unheard += left.length
  if (left.length > droppedBefore() - dropped) found(`${left.length} silent connections are still there`)
  for (const socket of left) socket.destroy()
}

/** An admitted client that shows credentials of others, one after the other. */
function storm() {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    let heard = ''
    const lines = Array.from({ length: 200 }, (_, id) =>
      open(random.pick([...TOKENS, () => good])()).replace('"id":1', `"id":${id}`),
    )
    socket.write(open(other).replace('"id":1', '"id":"in"') + lines.join(''))
    socket.on('data', (chunk) => {
      heard += chunk
    })
    socket.on('error', () => {})
    socket.on('close', resolve)
    setTimeout(() => {
      if (/"principal":"(?!other")/.test(heard)) found(`a connection changed hands: ${heard.slice(0, 300)}`)
      socket.destroy()
    }, 5_000)
  })
}

class GoodClient {
  timesMs = []
  isOver = false
  #socket = connect({ host: '127.0.0.1', port })
  #held = ''
  #told = () => {}

  async open() {
    this.#socket.setEncoding('utf8').on('data', (chunk) => {
      this.#held += chunk
      if (!this.#held.includes('\n')) return
      const line = this.#held
      this.#held = ''
      this.#told(line)
    })
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      if (!this.isOver) found('the good client was closed')
      this.#told('')
    })
    const answer = await this.#ask(open(good))
    if (!answer.includes('"result"')) found(`the good client was not let in: ${answer}`)
  }

  async work() {
    while (!this.isOver && !this.#socket.destroyed) {
      const beganMs = performance.now()
      const answer = await this.#ask('{"jsonrpc":"2.0","id":1,"method":"good"}\n')
      this.timesMs.push(performance.now() - beganMs)
      if (!answer.includes('"result"')) found(`the good client got ${answer}`)
      await sleep(GOOD_PAUSE_MS)
    }
    this.isOver = true
    this.#socket.destroy()
  }

  takeMedianMs() {
    const sorted = this.timesMs.sort((one, next) => one - next)
    this.timesMs = []
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  }

  #ask(line) {
    this.#socket.write(line)
    return new Promise((resolve) => {
      this.#told = resolve
    })
  }
}

/** The hostile up to each look, and what the bus holds there. */
async function comeInParts() {
  const looks = []
  let come = 0
  for (const share of LOOKS) {
    const due = Math.round(count * share)
    await Promise.all([visitors(due - come), ...(share === 1 ? [storm()] : [])])
    come = due
    if (share < 1) looks.push(await look())
  }
  return looks
}

async function look() {
  await sleep(SETTLING_MS)
  return readHeap(bus)
}

const heldMib = ({ heapMib, buffersMib }) => heapMib + buffersMib
const tellLook = (each, index) =>
  `${LOOKS[index] * 100} %: heap ${each.heapMib.toFixed(1)}, buffers ${each.buffersMib.toFixed(1)}, RSS ${each.rssMib.toFixed(0)}`

try {
  const client = new GoodClient()
  await client.open()
  const working = client.work()
  await sleep(500)
  const descriptors = descriptorsOf(bus.pid).length
  const quietMs = client.takeMedianMs()
  const beganMs = performance.now()
  const looks = await comeInParts()
  const busyMs = client.takeMedianMs()
  await flood(crowd)
  const crowdedMs = client.takeMedianMs()
  looks.push(await look())
  client.isOver = true
  await working
  // Whoever was not heard in time was dropped by the system, or the bus still holds it.
  const isEmpty = async () => (await bus.status())?.clients === 0 && descriptorsOf(bus.pid).length <= descriptors
  if ((await eventually(isEmpty, VISIT_MS, 100)) !== true)
    found(
      `connections are left: ${(await bus.status())?.clients}, descriptors ${descriptorsOf(bus.pid).length} of ${descriptors}`,
    )
  await sleep(200)
  const heard = readFileSync(join(folder, 'heard'), 'utf8')
  if (heard.includes(HOSTILE_WORD) || heard.includes('bus::')) found('a worker heard of a hostile client')
  const written = bus.log() + readFileSync(join(folder, 'audit.log'), 'utf8')
  for (const word of [HOSTILE_WORD, good, other]) if (written.includes(word)) found('a log has what a stranger said')
  const [first, last] = [looks[0], looks.at(-1)]
  const growth = Math.max(0, heldMib(last) - SPARE_MIB) / heldMib(first)
  if (growth > MOST_GROWTH) found(`what the bus holds is ${growth.toFixed(3)} times what it was at the first look`)
  if (last.rssMib - first.rssMib > MAX_RSS_GROWTH_MIB)
    found(`RSS grew from ${first.rssMib.toFixed(0)} to ${last.rssMib.toFixed(0)} MiB`)
  const seconds = ((performance.now() - beganMs) / 1_000).toFixed(1)
  console.log(
    `seed ${seed}: ${tally.visits} hostile connections in ${seconds} s, ${crowd} silent ones; ${findings.length} findings`,
  )
  console.log(
    `refused ${tally.refused}, closed without a word ${tally.silent}, left before ${tally.left}, not heard by the bus ${tally.unheard}; admitted ${findings.filter((text) => text.includes('"result"')).length}`,
  )
  console.log(
    `MiB after a collection, ${looks.map(tellLook).join('; ')}; without spares ${growth.toFixed(3)} times the first`,
  )
  console.log(
    `p50 of the good client: quiet ${quietMs.toFixed(2)} ms, beside them ${busyMs.toFixed(2)} ms, beside the silent ${crowdedMs.toFixed(2)} ms`,
  )
} finally {
  await bus.clear()
  server.close()
  rmSync(folder, { recursive: true, force: true })
}
for (const text of findings) console.error(text)
process.exit(findings.length === 0 ? 0 : 1)
