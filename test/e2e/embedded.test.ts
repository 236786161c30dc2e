/** `startBus` of the package: the daemon inside a program, as its own process and in this one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { BusEvents, ConfigObject, EmbeddedBus, StartOptions } from '../../src/embed/index.ts'
import { testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { eventually, within } from '../support/waiting.ts'

const { startBus, BusConfigError }: typeof import('../../src/embed/index.ts') = await import(
  new URL('../../dist/embed/index.js', import.meta.url).href
)
const PROGRAM = fileURLToPath(new URL('../fixtures/embedding.mjs', import.meta.url))

const configOf = (...pools: object[]) => config(pools) as ConfigObject

async function start(given: ConfigObject, options: Partial<StartOptions> = {}): Promise<EmbeddedBus> {
  const bus = await startBus({ config: given, ...options })
  onTestFinished(() => bus.stop({ atOnce: true }))
  return bus
}

/** Asks over a connection of the program itself. */
async function ask(bus: EmbeddedBus, message: object, to?: string): Promise<Record<string, unknown>> {
  const connection = await bus.connect(to === undefined ? {} : { pool: to })
  const lines = connection.lines()
  await connection.send(JSON.stringify({ id: 1, method: 'x', ...message }))
  const { value } = await lines.next()
  await connection.close()
  return JSON.parse(String(value))
}

describe('the program around it', () => {
  test('keeps its signals and its exit, and ends by itself when the bus has stopped', async () => {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(configOf(pool('echo'))), 'stop'], { stdio: 'pipe' })
    const [line] = await once(child.stdout, 'data')
    const { before, after, pids } = JSON.parse(String(line))
    expect(after).toEqual(before)
    expect((await within(5_000, 'the program to end', once(child, 'exit')))[0]).toBe(0)
    for (const pid of pids) expect(isAlive(pid)).toBe(false)
  })

  test('leaves no worker behind when it is killed', async () => {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(configOf(pool('echo')))], { stdio: 'pipe' })
    const [line] = await once(child.stdout, 'data')
    const { pids } = JSON.parse(String(line))
    expect(pids.length).toBeGreaterThan(0)
    child.kill('SIGKILL')
    await eventually('the workers to be gone', () => !pids.some(isAlive), 5_000)
  })

  test('leaves no record and no control socket in the folder of the user', async () => {
    const workspace = testWorkspace()
    const env = { ...process.env, HOME: workspace.home }
    const args = [PROGRAM, JSON.stringify(configOf(pool('echo')))]
    const child = spawn(process.execPath, args, { env, stdio: 'pipe' })
    workspace.owns(child.pid)
    await once(child.stdout, 'data')
    expect(workspace.read('home/.stdio-bus')).toBe('')
  })
})

describe('a bus', () => {
  test('several live in one process, each with its own clients', async () => {
    const [one, other] = [await start(configOf(pool('echo'))), await start(configOf(pool('echo')))]
    const answers = await Promise.all([ask(one, { params: 1 }), ask(other, { params: 2 }), ask(one, { params: 3 })])
    expect(answers.map(({ result }) => (result as { echo: unknown }).echo)).toEqual([1, 2, 3])
    await one.stop()
    expect(await ask(other, { params: 4 })).toMatchObject({ result: { echo: 4 } })
  })

  test('has the doors of its configuration, and tells where they are', async () => {
    const workspace = testWorkspace()
    const unix = workspace.path('embedded.sock')
    const bus = await start({ ...configOf(pool('echo')), listen: { unix, tcp: '127.0.0.1:0' } })
    expect(bus.addresses).toEqual([`unix:${unix}`, expect.stringMatching(/^tcp:127\.0\.0\.1:[1-9]\d+$/)])
  })

  test('tells what becomes of workers and clients, and what it logs', async () => {
    const bus = await start(configOf(pool('dies-on-request')))
    const heard: { [Name in keyof BusEvents]: BusEvents[Name][0][] } = { log: [], worker: [], client: [], ended: [] }
    for (const name of ['log', 'worker', 'client'] as const)
      bus.on(name, (what: unknown) => heard[name].push(what as never))
    const answer = await ask(bus, { method: 'die', params: { code: 3 } })
    expect(answer).toMatchObject({ error: { data: { reason: 'worker_exited' } } })
    await eventually('a new worker', () => heard.worker.at(-1)?.what === 'started')
    expect(heard.worker).toContainEqual({ pool: 'dies-on-request', what: 'ended', isClean: false })
    expect(heard.client).toContainEqual({ what: 'came', door: 'unix', peer: '' })
    expect(heard.log).toContainEqual(
      expect.objectContaining({ msg: 'worker exited', pool: 'dies-on-request', exitCode: 3 }),
    )
  })

  test('takes another configuration while it runs, whole or not at all', async () => {
    const bus = await start(configOf(pool('echo')))
    await expect(bus.reload({ pools: [{ id: 'echo' }] })).rejects.toThrow(/the old one stays/)
    expect(await ask(bus, {}, 'echo')).toHaveProperty('result')
    await bus.reload(configOf(pool('echo'), pool('slow')))
    expect(await ask(bus, { params: { ms: 1 } }, 'slow')).toHaveProperty('result')
    await bus.reload()
    await expect(bus.connect({ pool: 'nobody' })).rejects.toThrow(/It has: echo, slow/)
  })

  test('reads a file, and reads it again', async () => {
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', configOf(pool('echo')))
    const bus = await startBus({ config: file })
    onTestFinished(() => bus.stop({ atOnce: true }))
    writeFileSync(file, JSON.stringify(configOf(pool('echo'), pool('slow'))))
    await bus.reload()
    expect(new Set(bus.status().workers.map((worker) => worker.pool))).toEqual(new Set(['echo', 'slow']))
  })

  test('a listener that throws is no matter of the bus', async () => {
    const bus = await start(configOf(pool('echo')))
    const thrown: unknown[] = []
    const hear = (error: unknown) => thrown.push(error)
    const own = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException').on('uncaughtException', hear)
    onTestFinished(() => {
      process.removeAllListeners('uncaughtException')
      for (const listener of own) process.on('uncaughtException', listener)
    })
    bus.once('client', () => {
      throw new Error('of the program')
    })
    expect(await ask(bus, {})).toHaveProperty('result')
    expect(thrown).toEqual([new Error('of the program')])
  })

  test('much goes through a connection of the program, and a reader that does not read holds the bus', async () => {
    const bus = await start(configOf(pool('echo')))
    const connection = await bus.connect()
    const text = 'ü'.repeat(40_000)
    const sent = (async () => {
      for (let id = 0; id < 500; id++) await connection.send(JSON.stringify({ id, method: 'x', params: { id, text } }))
    })()
    const ids: unknown[] = []
    for await (const line of connection.lines()) {
      const { id, result } = JSON.parse(line.toString())
      expect(result.echo).toEqual({ id, text })
      if (ids.push(id) === 500) break
    }
    await sent
    expect(ids).toEqual(ids.map((_id, index) => index))
  })
})

describe('the end', () => {
  test('what is owed is waited for, and the processes are gone', async () => {
    const bus = await start(configOf(pool('slow')))
    const pids = bus.status().workers.map(({ pid }) => pid!)
    const answer = ask(bus, { params: { ms: 300 } })
    await eventually('the request to be under way', () => bus.status().outstanding === 1)
    let isTold = false
    bus.once('ended', () => {
      isTold = true
    })
    await bus.stop()
    expect(await answer).toHaveProperty('result')
    expect(isTold).toBe(true)
    expect(pids.some(isAlive)).toBe(false)
    // A second time is no harm, and whoever comes now is refused.
    await bus.stop()
    await expect(bus.connect()).rejects.toThrow('this bus has ended')
  })

  test('at once: nothing is waited for', async () => {
    const bus = await start(configOf(pool('slow')))
    const connection = await bus.connect()
    await connection.send(JSON.stringify({ id: 1, method: 'x', params: { ms: 60_000 } }))
    await within(3_000, 'the bus to end', bus.stop({ atOnce: true }))
    expect(await within(3_000, 'the connection to end', connection.closed)).toBeDefined()
  })
})

describe('what keeps it from starting', () => {
  test('mistakes in the configuration, all of them, and nothing was started', async () => {
    const mistaken = {
      pools: [
        { id: 'a', comand: 'x' },
        { id: 'a', agent: 'echo', instances: -1 },
      ],
    }
    const error = await startBus({ config: mistaken as unknown as ConfigObject }).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(BusConfigError)
    expect(error.problems.map(({ path }: { path: string }) => path)).toEqual(
      expect.arrayContaining(['pools[0].comand', 'pools[1].instances']),
    )
  })

  test('an address that is taken', async () => {
    const workspace = testWorkspace()
    const listen = { unix: workspace.path('taken.sock') }
    await start({ ...configOf(pool('echo')), listen })
    await expect(startBus({ config: { ...configOf(pool('echo')), listen } })).rejects.toThrow(/taken\.sock/)
  })
})
