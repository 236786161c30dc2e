import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type Compiled, compile } from '../../test/fixtures/process/compile.ts'
import { MAX_SOCKET_PATH_BYTES } from './address.ts'
import type { Listener } from './listener.ts'
import { listenUnix } from './unix.ts'

const FIXTURE = fileURLToPath(new URL('../../test/fixtures/process/opens-unix-door.mjs', import.meta.url))
/** No process has this number: it is above what the system gives out. */
const DEAD_PID = 2 ** 22 + 1

let compiled: Compiled
let folder: string
let path: string
const listeners: Listener[] = []
const starters: ChildProcess[] = []

beforeAll(async () => {
  compiled = await compile('transports/unix.ts')
})
afterAll(() => compiled.remove())

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stdio-bus-unix-'))
  path = join(folder, 'bus.sock')
})
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close()
  for (const starter of starters.splice(0)) starter.kill('SIGKILL')
  await rm(folder, { recursive: true })
})

async function open(where = path): Promise<Listener> {
  const listener = await listenUnix(where, (socket) => socket.on('error', () => {}).end('ours'))
  listeners.push(listener)
  return listener
}

/** Starts a process of its own that opens the same door, and tells what it said: `listening` or the refusal. */
async function start(): Promise<{ starter: ChildProcess; said: string }> {
  const starter = spawn(process.execPath, [FIXTURE, compiled.folder, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  starters.push(starter)
  const [chunk] = await once(starter.stdout!, 'data')
  return { starter, said: String(chunk).trim() }
}

async function leaveStaleSocket(): Promise<void> {
  const { starter } = await start()
  starter.kill('SIGKILL')
  await once(starter, 'exit')
  expect(lstatSync(path).isSocket()).toBe(true)
}

describe('the unix door', () => {
  it('is for its owner only, whatever the umask, and leaves nothing else behind', async () => {
    const before = process.umask(0)
    await open()
    expect(process.umask(before)).toBe(0)
    expect(lstatSync(path).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder)).toEqual(['bus.sock'])
  })

  it('removes its file when it is closed', async () => {
    const listener = await open()
    await listener.close()
    expect(readdirSync(folder)).toEqual([])
  })

  it('4.1.1 takes the longest path there may be', async () => {
    const deep = join(folder, 'd'.repeat(MAX_SOCKET_PATH_BYTES - folder.length - 3))
    mkdirSync(deep)
    const longest = join(deep, 's')
    expect(longest.length).toBe(MAX_SOCKET_PATH_BYTES)
    await open(longest)
    expect(await text(connect(longest))).toBe('ours')
  })

  it('says that the directory is missing', async () => {
    const refused = open(join(folder, 'nowhere', 'bus.sock'))
    await expect(refused).rejects.toMatchObject({ code: 'directory_missing', exitCode: 1 })
    await expect(refused).rejects.toThrow(join(folder, 'nowhere'))
  })

  it('says that the directory is a file', async () => {
    writeFileSync(path, '')
    await expect(open(join(path, 'bus.sock'))).rejects.toMatchObject({ code: 'directory_missing' })
  })
})

describe('8.6 what is there already', () => {
  it('a stale socket is replaced', async () => {
    await leaveStaleSocket()
    await open()
    expect(await text(connect(path))).toBe('ours')
    expect(lstatSync(path).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder)).toEqual(['bus.sock'])
  })

  it('a live socket is refused and goes on serving', async () => {
    const { starter } = await start()
    const refused = open()
    await expect(refused).rejects.toMatchObject({ code: 'socket_live', exitCode: 1 })
    await expect(refused).rejects.toThrow(/another process is listening .* choose another path/)
    expect(await text(connect(path))).toBe(`${starter.pid}`)
  })

  it.each([
    ['to a stale socket', () => leaveStaleSocket()],
    ['to nothing', async () => {}],
  ])('a symlink %s is never followed', async (_name, prepare) => {
    await prepare()
    const link = join(folder, 'link.sock')
    symlinkSync(path, link)
    const before = existsSync(path)
    await expect(open(link)).rejects.toMatchObject({ code: 'path_taken' })
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(existsSync(path)).toBe(before)
  })

  it.each([
    ['a file', () => writeFileSync(path, 'precious')],
    ['a directory', () => mkdirSync(path)],
  ])('%s is left alone', async (_name, prepare) => {
    prepare()
    const { ino } = lstatSync(path)
    await expect(open()).rejects.toMatchObject({ code: 'path_taken', exitCode: 1 })
    expect(lstatSync(path).ino).toBe(ino)
    expect(readdirSync(folder)).toEqual(['bus.sock'])
  })

  it('at the end only our own file is removed', async () => {
    const listener = await open()
    await rm(path)
    const { starter, said } = await start()
    expect(said).toBe('listening')
    await listener.close()
    await new Promise(setImmediate)
    expect(await text(connect(path))).toBe(`${starter.pid}`)
  })
})

describe('8.6 the lock', () => {
  it.each([
    ['on an empty place', async () => {}],
    ['over a stale socket', () => leaveStaleSocket()],
    [
      'over a stale socket and a stale lock',
      async () => {
        await leaveStaleSocket()
        writeFileSync(`${path}.lock`, `${DEAD_PID} left-behind\n`)
      },
    ],
  ])('of ten starters at once %s exactly one listens', async (_name, prepare) => {
    await prepare()
    const started = await Promise.all(Array.from({ length: 10 }, start))
    const winners = started.filter(({ said }) => said === 'listening')
    expect(winners).toHaveLength(1)
    expect(new Set(started.map(({ said }) => said))).toEqual(new Set(['listening', 'socket_live']))
    expect(await text(connect(path))).toBe(`${winners[0]!.starter.pid}`)
    expect(readdirSync(folder)).toEqual(['bus.sock'])
  })

  it('two listeners of one process do not overtake each other either', async () => {
    const outcomes = await Promise.allSettled([open(), open(), open()])
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it.each([
    ['whose holder is dead', `${DEAD_PID} left-behind\n`, 0],
    ['that is far too old, even if its number lives', `${process.pid} left-behind\n`, 3_600],
    ['that was left empty long ago', '', 3_600],
  ])('a lock %s is broken', async (_name, content, ageSec) => {
    writeFileSync(`${path}.lock`, content)
    const thenSec = Date.now() / 1_000 - ageSec
    utimesSync(`${path}.lock`, thenSec, thenSec)
    await open()
    expect(readdirSync(folder)).toEqual(['bus.sock'])
  })

  it.each<[string, (lock: string) => void]>([
    ['a pipe', (lock) => void execFileSync('mkfifo', [lock])],
    ['a folder', (lock) => mkdirSync(lock)],
    ['a symbolic link', (lock) => symlinkSync('/etc/passwd', lock)],
  ])('%s in its place is refused at once and left alone', async (_what, put) => {
    verifies('8.6-plain')
    const lock = `${path}.lock`
    put(lock)
    const thenSec = Date.now() / 1_000 - 3_600
    lutimesSync(lock, thenSec, thenSec)
    await expect(open()).rejects.toMatchObject({ code: 'path_taken', exitCode: 1 })
    expect(readdirSync(dirname(lock))).toEqual(['bus.sock.lock'])
  })

  it('a lock that is held is waited for, then named, and never removed', async () => {
    const lock = `${path}.lock`
    writeFileSync(lock, `${process.pid} held\n`)
    const refused = open()
    await expect(refused).rejects.toMatchObject({ code: 'socket_locked', exitCode: 1 })
    await expect(refused).rejects.toThrow(`process ${process.pid} `)
    expect(readdirSync(dirname(lock))).toEqual(['bus.sock.lock'])
  })
})
