import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type Compiled, compile } from '../../test/fixtures/process/compile.ts'
import { AuditLog, MAX_WAITING_BYTES } from './audit.ts'
import type { AuditEvent } from './audit-line.ts'

const KEYS = [
  'time',
  'event',
  'principal',
  'subject',
  'via',
  'credential',
  'door',
  'peer',
  'client',
  'pool',
  'method',
  'tool',
  'outcome',
  'reason',
  'duration_ms',
  'trace_id',
]

const FIXTURE = fileURLToPath(new URL('../../test/fixtures/process/audits.mjs', import.meta.url))

let compiled: Compiled
beforeAll(async () => {
  compiled = await compile('access/audit.ts')
})
afterAll(() => compiled.remove())

let folder: string
let file: string
let logged: string[]
const opened: AuditLog[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'audit-'))
  file = join(folder, 'audit.log')
  logged = []
})
afterEach(async () => {
  for (const audit of opened.splice(0)) await audit.close()
  rmSync(folder, { recursive: true })
})

function open(options: { isRequired?: boolean; path?: string; closeMs?: number } = {}): AuditLog {
  const audit = new AuditLog({
    file: options.path ?? file,
    isRequired: options.isRequired ?? false,
    log: (_level, text) => logged.push(text),
    times: { batchMs: 1, retryMs: 5, fullPipeMs: 1, closeMs: options.closeMs ?? 20_000 },
  })
  opened.push(audit)
  return audit
}

type Line = Readonly<Record<string, unknown>>

function linesIn(text: string): Line[] {
  expect(text === '' || text.endsWith('\n')).toBe(true)
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

const linesOf = (path: string): Line[] => linesIn(readFileSync(path, 'utf8'))
const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 20_000, interval: 2 })
const numbered = (n: number): AuditEvent => ({ event: 'call', method: `m${n}` })
const isNumbered = (line: Line, n: number): boolean => line['method'] === `m${n}`

/** Tells of calls, beginning with this number, until some are lost; the next number. */
function tellUntilLost(audit: AuditLog, first = 0): number {
  let n = first
  for (const before = audit.status.lost; audit.status.lost === before; n++) audit.write(numbered(n))
  return n
}

describe('a line', () => {
  it('9.23 has every key, in order, and null for what an event knows nothing of', async () => {
    verifies('9.23-keys')
    const audit = open()
    audit.write({
      event: 'call',
      principal: 'dev',
      subject: 'sue',
      via: 'jwt',
      credential: '0123abcd',
      door: 'tcp',
      peer: '127.0.0.1:9',
      client: 7,
      pool: 'tools',
      method: 'tools/call',
      tool: 'push',
      outcome: 'ok',
      reason: 'none',
      durationMs: 1.23456,
      traceId: 't1',
    })
    audit.write({ event: 'reload' })
    await audit.close()
    const [call, reload] = linesOf(file)
    expect(Object.keys(call!)).toEqual(KEYS)
    expect(Object.values(call!).slice(1)).toEqual(
      ['call', 'dev', 'sue', 'jwt', '0123abcd', 'tcp', '127.0.0.1:9', 7, 'tools'].concat([
        'tools/call',
        'push',
        'ok',
        'none',
        1.235,
        't1',
      ] as never),
    )
    expect(new Date(String(call!['time'])).toISOString()).toBe(call!['time'])
    expect(Object.keys(reload!)).toEqual(KEYS)
    expect(
      Object.values(reload!)
        .slice(2)
        .every((value) => value === null),
    ).toBe(true)
  })

  it('9.23 cuts what is long, and nothing that a peer chose breaks it or moves a cursor', async () => {
    verifies('9.23-cut')
    const audit = open()
    const odd = 'a\n\u001b[2J\u202e\u2028\u0085"\\'
    audit.write({ event: 'call', method: 'm'.repeat(257), tool: `${'t'.repeat(255)}\u{1f600}`, pool: odd })
    await audit.close()
    expect(linesOf(file)[0]).toMatchObject({ method: 'm'.repeat(256), tool: 't'.repeat(255), pool: odd })
    expect(readFileSync(file, 'utf8')).toMatch(/^[ -~]+\n$/)
  })
})

describe('the file', () => {
  it("9.23 is its owner's alone and is appended to", async () => {
    verifies('9.23-mode')
    writeFileSync(file, '{"kept":true}\n')
    chmodSync(file, 0o644)
    const audit = open()
    audit.write(numbered(1))
    await audit.close()
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(linesOf(file)).toMatchObject([{ kept: true }, { method: 'm1' }])
    const fresh = open({ path: join(folder, 'fresh.log') })
    await fresh.close()
    expect(statSync(join(folder, 'fresh.log')).mode & 0o777).toBe(0o600)
  })

  it('9.23 is never reached through a link', async () => {
    const target = join(folder, 'target')
    symlinkSync(target, file)
    const audit = open({ isRequired: true, closeMs: 20 })
    audit.write(numbered(1))
    expect(audit.isAvailable).toBe(false)
    expect(audit.status).toMatchObject({ state: 'failed', reason: expect.stringContaining('symbolic link') })
    await audit.close()
    expect(existsSync(target)).toBe(false)
  })

  it.each(['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'])('9.23 can be %s: a socket, a pipe or a file', (device) => {
    verifies('9.23-device')
    const command = `"$0" ${FIXTURE} ${compiled.folder} ${device}`
    const told = [{ event: 'open', principal: 'local' }]
    const run = (shell: string): string =>
      execFileSync('/bin/sh', ['-c', shell, process.execPath], { encoding: 'utf8' })
    expect(linesIn(run(command))).toMatchObject(told)
    expect(linesIn(run(`${command} | cat`))).toMatchObject(told)
    writeFileSync(file, '{"kept":true}\n')
    run(`${command} >>${file}`)
    expect(linesOf(file)).toMatchObject([{ kept: true }, ...told])
  })

  it('9.23 can be /dev/stderr', () => {
    const { stderr } = spawnSync(process.execPath, [FIXTURE, compiled.folder, '/dev/stderr'], { encoding: 'utf8' })
    expect(linesIn(stderr)).toMatchObject([{ event: 'open', principal: 'local' }])
  })

  it('9.23 that was put aside keeps what came before, and a new one takes the rest', async () => {
    verifies('9.23-reopened')
    const audit = open()
    audit.write(numbered(1))
    await until(() => expect(linesOf(file)).toHaveLength(1))
    renameSync(file, `${file}.1`)
    audit.write(numbered(2))
    await until(() => expect(linesOf(`${file}.1`)).toHaveLength(2))
    audit.reopen()
    audit.write(numbered(3))
    await audit.close()
    expect(linesOf(`${file}.1`)).toMatchObject([{ method: 'm1' }, { method: 'm2' }])
    expect(linesOf(file)).toMatchObject([{ method: 'm3' }])
  })

  it('9.23 loses and repeats nothing, however often it is rotated in the middle of a flood', async () => {
    const audit = open()
    const files: string[] = []
    for (let n = 0; n < 40_000; n++) {
      audit.write(numbered(n))
      if (n % 2_000 !== 1_999) continue
      files.push(`${file}.${files.length}`)
      if (existsSync(file)) renameSync(file, files.at(-1)!)
      audit.reopen()
      await new Promise(setImmediate)
    }
    await audit.close()
    const lines = [...files.filter(existsSync), file].flatMap(linesOf)
    expect(lines).toHaveLength(40_000)
    expect(lines.every(isNumbered)).toBe(true)
    expect(audit.status.lost).toBe(0)
  })

  it('9.23 stays in use when there is something else in its place at a rotation', async () => {
    const audit = open({ isRequired: true })
    renameSync(file, `${file}.1`)
    mkdirSync(file)
    audit.reopen()
    audit.write(numbered(1))
    await until(() => expect(linesOf(`${file}.1`)).toHaveLength(1))
    expect(audit.isAvailable).toBe(true)
    expect(logged).toEqual(['the audit log cannot be opened again; the old file is used'])
  })

  it('9.23 can be another one after a reload', async () => {
    const audit = open()
    audit.write(numbered(1))
    audit.reopen({ file: `${file}.other`, isRequired: true })
    audit.write(numbered(2))
    await audit.close()
    expect([...linesOf(file), ...linesOf(`${file}.other`)]).toMatchObject([{ method: 'm1' }, { method: 'm2' }])
  })
})

describe('what cannot be written', () => {
  it('9.23 waits, then is lost and counted; a gap says how much, in its place', async () => {
    verifies('9.23-waits', '9.23-gap')
    mkdirSync(file)
    const audit = open()
    const next = tellUntilLost(audit)
    audit.write(numbered(next))
    const { lost, waitingBytes, state } = audit.status
    expect({ lost, state }).toEqual({ lost: 2, state: 'failed' })
    expect(waitingBytes).toBeLessThanOrEqual(MAX_WAITING_BYTES)
    expect(waitingBytes).toBeGreaterThan(MAX_WAITING_BYTES - 1024)
    expect(audit.isAvailable).toBe(true)
    rmdirSync(file)
    await until(() => expect(audit.status).toMatchObject({ state: 'ok', waitingBytes: 0 }))
    audit.write(numbered(next + 1))
    await audit.close()
    const lines = linesOf(file)
    expect(lines.slice(0, -2).every(isNumbered)).toBe(true)
    expect(lines).toHaveLength(next - 1 + 2)
    expect(lines.at(-2)).toMatchObject({ event: 'gap', outcome: 'lost', reason: '2 lines' })
    expect(lines.at(-1)).toMatchObject({ method: `m${next + 1}` })
    expect(logged).toEqual([
      'the audit log cannot be written',
      'lines of the audit log are lost',
      'the audit log is written again',
    ])
  })

  it('9.23 once a line is lost all are, until the gap is told', async () => {
    mkdirSync(file)
    const audit = open()
    let kept = 0
    for (; audit.status.waitingBytes < MAX_WAITING_BYTES - 1_000; kept++) audit.write(numbered(kept))
    audit.write({ event: 'call', method: '\u0001'.repeat(256), tool: '\u0001'.repeat(256) })
    expect(audit.status.lost).toBe(1)
    audit.write(numbered(kept))
    expect(audit.status.lost).toBe(2)
    rmdirSync(file)
    await until(() => expect(audit.status).toMatchObject({ state: 'ok', waitingBytes: 0 }))
    expect(linesOf(file)).toHaveLength(kept + 1)
  })

  it('9.23 of a burst that cannot be written no more than the bound is kept', async () => {
    const audit = open({ path: '/dev/full' })
    const count = 20_000
    for (let n = 0; n < count; n++) audit.write(numbered(n))
    expect(audit.status).toMatchObject({ lost: 0, state: 'ok' })
    await until(() => expect(audit.status.state).toBe('failed'))
    const { lost, waitingBytes } = audit.status
    expect(waitingBytes).toBeLessThanOrEqual(MAX_WAITING_BYTES)
    audit.reopen({ file, isRequired: false })
    await until(() => expect(audit.status).toMatchObject({ state: 'ok', waitingBytes: 0 }))
    const lines = linesOf(file)
    expect(lines.slice(0, -1).every(isNumbered)).toBe(true)
    expect(lines.at(-1)).toMatchObject({ event: 'gap', reason: `${lost} lines` })
    expect(lines.length - 1 + lost).toBe(count)
  })

  it('9.23 a required log that cannot be opened lets nothing go on, until it can', async () => {
    verifies('9.23-required')
    mkdirSync(file)
    const audit = open({ isRequired: true })
    expect(audit.isAvailable).toBe(false)
    rmdirSync(file)
    await until(() => expect(audit.isAvailable).toBe(true))
  })

  it('9.23 a full disk is noticed with the first write, and left again by a reload', async () => {
    const audit = open({ isRequired: true, path: '/dev/full' })
    expect(audit.isAvailable).toBe(true)
    audit.write(numbered(0))
    await until(() => expect(audit.isAvailable).toBe(false))
    expect(audit.status.reason).toContain('ENOSPC')
    audit.write(numbered(1))
    audit.reopen({ file, isRequired: true })
    await until(() => expect(audit.isAvailable).toBe(true))
    expect(linesOf(file)).toMatchObject([{ method: 'm0' }, { method: 'm1' }])
  })

  it('9.23 a pipe that nobody reads bounds what waits; whoever reads again finds whole lines and the gap', async () => {
    execFileSync('mkfifo', [file])
    const audit = open({ isRequired: true })
    expect(audit.isAvailable).toBe(false)
    const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      await until(() => expect(audit.isAvailable).toBe(true))
      audit.write(numbered(0))
      await until(() => expect(audit.status.waitingBytes).toBe(0))
      for (let n = 1; n <= 3_000; n++) audit.write(numbered(n))
      await until(() => expect(audit.status.reason).toBe('nobody reads it'))
      expect(audit.isAvailable).toBe(false)
      const next = tellUntilLost(audit, 3_001)
      expect(audit.status.waitingBytes).toBeLessThanOrEqual(MAX_WAITING_BYTES)
      let text = ''
      await until(() => {
        text += readAll(reader)
        expect(audit.status).toMatchObject({ state: 'ok', waitingBytes: 0 })
      })
      text += readAll(reader)
      const lines = linesIn(text)
      expect(lines.at(-1)).toMatchObject({ event: 'gap', reason: '1 lines' })
      expect(lines.slice(0, -1).every(isNumbered)).toBe(true)
      expect(lines).toHaveLength(next)
    } finally {
      closeSync(reader)
    }
  })

  it('9.23 a line that was half written to a pipe is whole in what takes its place', async () => {
    execFileSync('mkfifo', [file])
    const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const audit = open()
    for (let n = 0; n < 2_000; n++) audit.write(numbered(n))
    await until(() => expect(audit.status.reason).toBe('nobody reads it'))
    const head = readAll(reader)
    closeSync(reader)
    audit.reopen({ file: `${file}.2`, isRequired: false })
    await audit.close()
    const lines = [...linesIn(head.slice(0, head.lastIndexOf('\n') + 1)), ...linesOf(`${file}.2`)]
    expect(lines.every(isNumbered)).toBe(true)
    expect(lines).toHaveLength(2_000)
  })

  it('9.23 the end of the bus waits for it no longer than a moment', async () => {
    const audit = open({ path: '/dev/full', closeMs: 20 })
    audit.write(numbered(0))
    await audit.close()
    expect(audit.status.lost).toBe(1)
    expect(logged).toContain('lines of the audit log are lost')
  })
})

it('9.23 a burst that comes at once is written whole', async () => {
  const audit = open({ isRequired: true })
  for (let n = 0; n < 30_000; n++) audit.write(numbered(n))
  await audit.close()
  const lines = linesOf(file)
  expect(lines).toHaveLength(30_000)
  expect(lines.every(isNumbered)).toBe(true)
  expect(audit.isAvailable).toBe(true)
})

function readAll(descriptor: number): string {
  const chunk = Buffer.alloc(1024 * 1024)
  try {
    return chunk.toString('utf8', 0, readSync(descriptor, chunk))
  } catch {
    return ''
  }
}
