/** The shell's own tables: what has ended is put away, whoever it was and however it went. */
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { specOf } from '../../../test/support/kernel-rig.ts'
import { parseConfig } from '../../config/read.ts'
import type { Write } from '../../kernel/events.ts'
import { spawnWorker } from '../../process/spawn.ts'
import { Daemon, type DaemonOptions } from './daemon.ts'
import { busSpecOf } from './launches.ts'
import type { Recorder } from './recorder.ts'

const ECHO = fileURLToPath(new URL('../../../test/fixtures/workers/echo.mjs', import.meta.url))
const log = { write: () => {} } as unknown as DaemonOptions['log']

function daemonWith(pool: object, command = process.execPath, more: Partial<DaemonOptions> = {}): Daemon {
  const reading = parseConfig('bus.json', JSON.stringify({ pools: [{ id: 'p', command: 'echo', ...pool }] }))
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
  const env = { PATH: process.env['PATH'] ?? '' }
  const daemon = new Daemon(busSpecOf(reading.config, false), {
    log,
    launch: () => spawnWorker({ command, args: [ECHO], env, cwd: process.cwd() }),
    stopAccepting: () => {},
    finished: () => {},
    ...more,
  })
  onTestFinished(async () => {
    await daemon.killAll()
    await daemon.close()
  })
  daemon.start()
  return daemon
}

/** A client that asks one thing, hears the answer, and is gone. */
async function visit(daemon: Daemon): Promise<void> {
  const socket = new Visitor()
  daemon.accept(socket, { door: 'unix', isLocal: true })
  socket.say('{"id":1,"method":"m"}')
  await socket.heard
  socket.destroy()
}

class Visitor extends PassThrough {
  #hear: () => void = () => {}
  readonly heard = new Promise<void>((resolve) => {
    this.#hear = resolve
  })

  say(line: string): void {
    this.push(`${line}\n`)
  }

  override _write(_chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#hear()
    done()
  }

  override _transform(): void {}
}

const NONE = { clients: 0, exchanges: 0, workers: 0, waiting: 0 }

test('workers of clients that have gone leave nothing behind', async () => {
  const daemon = daemonWith({ sharing: 'isolated', instances: 0 })
  await Promise.all(Array.from({ length: 5 }, () => visit(daemon)))
  await expect.poll(() => daemon.links, { timeout: 15_000 }).toEqual(NONE)
})

test('a worker that cannot be started leaves nothing behind', async () => {
  const daemon = daemonWith({ restart: 'never' }, '/nonexistent/program')
  await expect.poll(() => daemon.snapshot().workers[0]?.state).toBe('stopped')
  expect(daemon.links).toEqual(NONE)
})

/** Counts what is written to workers. */
class WriteCount {
  readonly chance = Math.random
  lines: number[] = []

  writing({ kind, buffers }: Write): void {
    if (kind === 'worker') this.lines.push(Buffer.concat(buffers).toString().split('\n').length - 1)
  }

  started(): void {}
  applied(): void {}
  writesTaken(): void {}
  wrote(): void {}
  async close(): Promise<void> {}
}

test.each([
  ['records of one read', true, [2]],
  ['chunks that come by themselves', false, [1, 1]],
])('%s leave together or apart', async (_what, encrypted, expected) => {
  const count = new WriteCount()
  const record = (): Recorder => count as unknown as Recorder
  const daemon = daemonWith({}, process.execPath, { record })
  await expect.poll(() => daemon.snapshot().workers[0]?.state).toBe('ready')
  const socket = Object.assign(new Visitor(), { encrypted })
  daemon.accept(socket, { door: 'tls', isLocal: false })
  await new Promise(setImmediate)
  for (const id of [1, 2]) socket.emit('data', Buffer.from(`{"id":${id},"method":"m"}\n`))
  await socket.heard
  expect(count.lines).toEqual(expected)
})

test('who goes on before the order to stop it is carried out is read', () => {
  let kill = (): void => {}
  const worker = { write: () => 0, passOn() {}, pause() {}, resume() {}, stop: async () => {}, kill: async () => {} }
  const full = { restart: 'never', limits: { maxOutputQueueBytes: 50 } } as const
  const daemon = new Daemon(specOf({ gateway: 'all', pools: [full] }), {
    log,
    launch: () => ({
      join: (of, tell) => {
        setImmediate(() => tell({ type: 'worker-opened', ...of, facts: {} }))
        kill = () => {
          tell({ type: 'worker-silent', ...of, pipe: 'stdout' })
          tell({ type: 'worker-ended', ...of, isClean: false, how: { exitCode: 1, signal: null } })
        }
        return worker
      },
    }),
    stopAccepting: () => {},
    finished: () => {},
  })
  onTestFinished(() => daemon.close())
  // What the call brings about ends the worker whose queue the line behind the call has filled.
  daemon.attach({ take: () => kill(), callerGone() {} } as unknown as Parameters<Daemon['attach']>[0])
  daemon.start()
  return new Promise<void>((done) => {
    setImmediate(() => {
      let isRead = true
      const read = (is: boolean) => (): void => {
        isRead = is
      }
      daemon.openPeer({ door: 'unix', isLocal: true, pool: 'p' }, (client, tell) => {
        setImmediate(() => {
          const lines = `{"id":1,"method":"a::b"}\n{"id":2,"method":"m","params":"${'x'.repeat(100)}"}\n`
          tell({ type: 'client-received', client, bytes: Buffer.from(lines) })
          expect(isRead).toBe(true)
          done()
        })
        return { write: () => 0, pause: read(false), resume: read(true), close() {} }
      })
    })
  })
})
