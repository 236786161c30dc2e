/**
 * What it costs to know who somebody is and to hold them to what they may do (contract 9): the same bus with `access` and without, a
 * blind pipe that speaks TLS, credentials judged again and again, and a door before which thousands stand in silence.
 *
 * Both sides of a row take turns. Whoever shows a token comes over TCP on both sides, since a Unix socket asks nobody.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { cpuSeconds } from '../process-figures.mjs'

const LINE = { lineBytes: 150, shape: 'flat' }
const FILE = 'access.json'
/** More than anybody sends, so that every message is counted and none is refused. */
const UNREACHED_RATE = '9999999/s'
const TOOLS = { allow: ['read_*', 'git::*', 'search'], deny: ['*_secret'] }
const MANY_PRINCIPALS = 10_000
const FEW_PRINCIPALS = 10
/** So many connections, each with so many `bus::open` in flight. */
const OPENERS = 8
const OPENS_IN_FLIGHT = 16
const SILENT = 5_000
/** Fewer from each than the bus lets wait before it is admitted. */
const SILENT_ADDRESSES = 20
const SILENT_AGAIN_MS = 5_000

const build = fileURLToPath(new URL('../../dist/access/token.js', import.meta.url))
const { makeToken, digestOf } = existsSync(build) ? await import(build) : {}

const openLine = (token, id = 1) =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method: 'bus::open', params: { token, pool: 'echo' } })}\n`

function principal(name, token, rights = {}) {
  return { name, pools: ['*'], ...rights, tokens: [{ sha256: digestOf(token) }] }
}

const tokens = new Map()
/** One token per name: what a bus is started with, and kept for, must be the same in every row. */
function tokenOf(name) {
  if (!tokens.has(name)) tokens.set(name, makeToken())
  return tokens.get(name)
}

async function withAccess(bench, { rights, audit, asks, inFlight = 64, lineBytes = LINE.lineBytes }) {
  const layout = { ...LINE, lineBytes, asks }
  const token = tokenOf('alice')
  const access = { file: FILE, ...(audit ? { audit: 'audit.log' } : {}) }
  const [known, anybody] = await bench.use(
    { kind: 'bus', ...layout, access, principals: [principal('alice', token, rights)] },
    { kind: 'bus', ...layout },
  )
  const spec = { clients: 1, inFlight, ...layout }
  return bench.pairs(
    bench.pace.pairs,
    () => bench.round(known, 'tcp', { ...spec, greeting: openLine(token) }),
    () => bench.round(anybody, 'tcp', spec),
  )
}

/** Throughput, and the same by the CPU time of the bus, which a machine with other work disturbs less. */
const linesTargets = (min) => [
  { figure: 'rateRatio', min },
  { figure: 'cpuRatio', max: Number((1 / min).toFixed(3)) },
]

async function overTls(bench, inFlight) {
  const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-bench-tls-'))
  try {
    const tls = makeCertificate(folder)
    const token = tokenOf('alice')
    const access = { file: FILE }
    const principals = [principal('alice', token)]
    const [bus, pipe] = await bench.use(
      { kind: 'bus', ...LINE, access, principals, tls },
      { kind: 'tlsPipe', ...LINE, tls },
    )
    const spec = { clients: 1, inFlight, ...LINE }
    return await bench.pairs(
      bench.pace.pairs,
      () => bench.round(bus, 'tls', { ...spec, greeting: openLine(token) }),
      () => bench.round(pipe, 'tls', spec),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function makeCertificate(folder) {
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(folder, name))
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const whom = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  execFileSync('openssl', ['req', '-x509', ...kind, ...whom, '-keyout', key, '-out', cert], { stdio: 'pipe' })
  execFileSync('chmod', ['600', key])
  return { cert, key }
}

/** An issuer on this machine, for as long as `use` takes. */
async function withIssuer(use) {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }] })
  const server = createServer((_, response) => response.end(keys)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${server.address().port}`
  const sign = (subject) =>
    new SignJWT({ scope: 'bus:write' })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer(issuer)
      .setAudience('bus')
      .setSubject(subject)
      .setExpirationTime('1h')
      .sign(privateKey)
  try {
    return await use({ issuer, sign })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

/** `bus::open` again and again on connections of the same callers: what a credential costs that was seen before. */
async function opens(bench, target, credentials) {
  target.placement.placeOthers(process.pid)
  const openers = await Promise.all(credentials.map((credential) => Opener.connect(target.tcp, credential)))
  try {
    for (const opener of openers) opener.start()
    await sleep(bench.pace.warmMs)
    const before = { at: performance.now(), cpu: cpuSeconds(target.pid), answered: Opener.answered }
    await sleep(bench.pace.roundMs)
    const seconds = (performance.now() - before.at) / 1000
    const answered = Opener.answered - before.answered
    const cpu = cpuSeconds(target.pid) - before.cpu
    for (const opener of openers) opener.check()
    return {
      requestsPerSecond: answered / seconds,
      cpuUsPerLine: (cpu * 1e6) / (2 * answered),
      busyBus: cpu / seconds,
    }
  } finally {
    for (const opener of openers) opener.close()
  }
}

class Opener {
  static answered = 0
  #isOn = false
  #wrong

  static async connect(address, credential) {
    const opener = new Opener(connect({ ...address, noDelay: true }), openLine(credential))
    await once(opener.socket, 'connect')
    return opener
  }

  constructor(socket, line) {
    this.socket = socket
    this.line = line
    socket.setEncoding('latin1').on('data', (text) => this.#read(text))
    socket.on('error', (error) => (this.#wrong ??= error.message))
    socket.on('close', () => this.#isOn && (this.#wrong ??= 'the connection was closed'))
  }

  start() {
    this.#isOn = true
    this.socket.write(this.line.repeat(OPENS_IN_FLIGHT))
  }

  check() {
    if (this.#wrong) throw new Error(this.#wrong)
  }

  close() {
    this.#isOn = false
    this.socket.destroy()
  }

  #read(text) {
    if (text.includes('"error"')) this.#wrong ??= text.trim()
    let answers = 0
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) answers++
    Opener.answered += answers
    if (this.#isOn) this.socket.write(this.line.repeat(answers))
  }
}

const callers = Array.from({ length: OPENERS }, (_, index) => `caller-${index}`)

function signedAgain(bench) {
  return withIssuer(async ({ issuer, sign }) => {
    const oauth = {
      issuer,
      audience: 'bus',
      jwks_url: `${issuer}/keys`,
      map: [{ claim: 'scope', equals: 'bus:write', as: callers[0] }],
    }
    const principals = callers.map((name) => principal(name, tokenOf(name)))
    const [bus] = await bench.use({ kind: 'bus', ...LINE, access: { file: FILE, oauth }, principals })
    const signed = await Promise.all(callers.map(sign))
    return bench.pairs(
      bench.pace.pairs,
      () => opens(bench, bus, signed),
      () => opens(bench, bus, callers.map(tokenOf)),
    )
  })
}

async function manyPrincipals(bench) {
  const crowd = (count) => {
    const strangers = Array.from({ length: count - OPENERS }, (_, index) => principal(`stranger-${index}`, makeToken()))
    // Those who come stand among those who do not.
    for (const [index, name] of callers.entries())
      strangers.splice(Math.floor((index * count) / OPENERS), 0, principal(name, tokenOf(name)))
    return strangers
  }
  const [many, few] = await bench.use(
    { kind: 'bus', ...LINE, access: { file: FILE }, principals: crowd(MANY_PRINCIPALS) },
    { kind: 'bus', ...LINE, access: { file: FILE }, principals: crowd(FEW_PRINCIPALS) },
  )
  return bench.pairs(
    bench.pace.pairs,
    () => opens(bench, many, callers.map(tokenOf)),
    () => opens(bench, few, callers.map(tokenOf)),
  )
}

async function amidSilence(bench) {
  const token = tokenOf('alice')
  const want = { kind: 'bus', ...LINE, access: { file: FILE }, principals: [principal('alice', token)] }
  const [crowded, quiet] = await bench.use({ ...want, as: 'crowded' }, { ...want, as: 'quiet' })
  const spec = { clients: 1, inFlight: 1, ...LINE, greeting: openLine(token), roundMs: bench.pace.latencyMs }
  const crowd = { address: crowded.tcp, count: SILENT, addresses: SILENT_ADDRESSES, againMs: SILENT_AGAIN_MS }
  await bench.load('holder').ask('besiege', crowd)
  try {
    return await bench.pairs(
      bench.pace.latencyPairs,
      () => bench.round(crowded, 'tcp', spec),
      () => bench.round(quiet, 'tcp', spec),
    )
  } finally {
    await bench.load('holder').ask('release')
  }
}

export const accessRows = [
  {
    name: 'access-lines-64-against-none',
    targets: linesTargets(0.95),
    measure: (bench) => withAccess(bench, {}),
  },
  {
    name: 'access-rate-64-against-none',
    targets: linesTargets(0.9),
    measure: (bench) => withAccess(bench, { rights: { rate: UNREACHED_RATE } }),
  },
  {
    name: 'access-tools-64-against-none',
    targets: linesTargets(0.8),
    measure: (bench) => withAccess(bench, { rights: { tools: TOOLS }, asks: 'tool', lineBytes: 175 }),
  },
  {
    name: 'access-audit-64-against-none',
    targets: linesTargets(0.5),
    measure: (bench) => withAccess(bench, { audit: true }),
  },
  {
    name: 'access-tls-64-against-tls-pipe',
    targets: [{ figure: 'cpuRatio', max: 1.5 }],
    measure: (bench) => overTls(bench, 64),
  },
  {
    name: 'access-jwt-again-against-token',
    targets: linesTargets(0.9),
    measure: signedAgain,
  },
  {
    name: 'access-principals-10000-against-10',
    targets: [{ figure: 'cpuRatio', max: 1.1 }],
    measure: manyPrincipals,
  },
  {
    name: 'access-silent-5000-against-none',
    targets: [{ figure: 'p50Ratio', max: 2 }],
    descriptors: SILENT + 200,
    measure: amidSilence,
  },
]
