/** Clauses 3.3 and 5: what a worker is given, what it may say, and what happens to what it should not have said. */
import { realpathSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { levelOf } from '../support/bus-log.ts'
import { config, pool as poolOf } from '../support/pools.ts'
import { descriptorsOf, groupOf, isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const total = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, count) => sum + count, 0)

let pipes: object = {}
const pool: typeof poolOf = (name, options) => poolOf(name, { ...pipes, ...options })

test('3.3 pipes fifo: a program that opens its three ends by name', async () => {
  verifies('3.3-fifo')
  const script = `while read -r line; do
    echo heard > /dev/stderr
    echo '{"jsonrpc":"2.0","id":1,"result":"by name"}' > /dev/stdout
  done < /dev/stdin`
  const program = { id: 'p', command: '/bin/sh', args: ['-c', script], instances: 1, pipes: 'fifo' }
  const bus = await startBus({ config: config(program) })
  const client = await bus.connect()
  for (let n = 0; n < 2; n++) expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: 'by name' })
  await bus.log.line(/heard/)
})

describe.each([
  ['default', {}],
  ['fifo', { pipes: 'fifo' }],
])('over %s pipes', (kind, given) => {
  beforeEach(() => {
    pipes = given
  })

  describe('what a worker says', () => {
    test('5.2 lines that are no JSON objects are dropped, counted and warned of; the worker lives', async () => {
      verifies('5.2-junk', 'promise-not-silent')
      const bus = await startBus({ config: config(pool('prints-junk')) })
      const client = await bus.connect()
      const first = await client.ask({ id: 1, method: 'm' })
      const second = await client.ask({ id: 2, method: 'm' })
      expect(second.result.pid).toBe(first.result.pid)
      expect(client.lines).toHaveLength(2)
      const status = await bus.status()
      expect(total(status.dropped)).toBe(12)
      expect(status.workers[0]).toMatchObject({ restarts: 0, state: 'ready' })
      expect(bus.log.warnings().length).toBeGreaterThan(0)
    })

    test('5.2 the junk itself is not in the log at the default level', async () => {
      verifies('5.2-bytes-at-debug', '8.5-no-payload')
      const bus = await startBus({ config: config(pool('prints-junk')) })
      await (await bus.connect()).ask({ id: 1, method: 'm' })
      await eventually('a warning', () => bus.log.warnings().length > 0)
      expect(bus.log.text).not.toContain('Loading model')
    })

    test('5.2 at debug level its first bytes are there, escaped', async () => {
      verifies('5.2-bytes-at-debug', '8.5-escaped')
      const bus = await startBus({ config: config(pool('prints-junk')), args: ['--log-level', 'debug'] })
      await (await bus.connect()).ask({ id: 1, method: 'm' })
      await bus.log.line(/Loading model/)
      expect(bus.log.text).not.toContain('\u001b')
    })

    test('5.2 objects that are no messages are dropped and counted too', async () => {
      verifies('5.2-junk')
      const bus = await startBus({ config: config(pool('obeys')) })
      const client = await bus.connect()
      const answer = await client.ask({ id: 1, method: 'm', params: { write: '{}\n{"a":1}\n{"id":$ID,"result":1}\n' } })
      expect(answer).toMatchObject({ id: 1, result: 1 })
      expect(total((await bus.status()).dropped)).toBe(2)
    })

    test('3.3 stderr is not parsed', async () => {
      verifies('3.3-stderr-not-parsed')
      const bus = await startBus({ config: config(pool('stderr-noise')) })
      const client = await bus.connect()
      await bus.log.line(/from stderr/)
      const text = '{"id":1,"result":"wrong"}'
      expect(await client.ask({ id: 1, method: 'm', params: { lines: 3, text } })).toMatchObject({
        result: { pid: expect.any(Number) },
      })
      await client.staysQuiet(100)
    })

    test("5.3 stderr goes line by line to the log with the worker's tag", async () => {
      verifies('5.3-stderr')
      const bus = await startBus({ config: config(pool('stderr-noise', { id: 'noisy' })) })
      await (await bus.connect()).ask({ id: 1, method: 'm', params: { lines: 2, text: 'something \u001b[31mred' } })
      for (const n of [0, 1]) {
        const line = await bus.log.line((each) => each.text.includes('something') && each.text.includes(`red ${n}`))
        expect(line.text).toContain('noisy')
        expect(line.text).not.toContain('\u001b')
      }
    })

    test('5.3 a flood on stderr is rate-limited and does not block the worker', async () => {
      verifies('5.3-rate')
      const bus = await startBus({ config: config(pool('stderr-noise')) })
      const client = await bus.connect()
      const answer = await client.ask({ id: 1, method: 'm', params: { lines: 20_000, text: 'flood' } }, 10_000)
      expect(answer).toMatchObject({ id: 1, result: {} })
      const written = bus.log.lines.filter((line) => line.text.includes('flood')).length
      expect(written).toBeGreaterThan(0)
      expect(written).toBeLessThan(10_000)
      await bus.log.line(/suppress/i)
    })
  })

  describe('what a worker is given', () => {
    test('5.4 env is honoured, and the environment is small otherwise', async () => {
      verifies('5.4-env', '5.4-safe-env')
      const env = { SECRET_TOKEN: 'hunter2', UNRELATED: 'x' }
      const bus = await startBus({ config: config(pool('prints-env', { env: { GIVEN: 'yes' } })), env })
      const { result } = await (await bus.connect()).ask({ id: 1, method: 'm' })
      expect(result.env).toMatchObject({ GIVEN: 'yes', HOME: bus.workspace.home, LANG: 'C.UTF-8' })
      expect(result.env.PATH).toBe(process.env['PATH'])
      expect(Object.keys(result.env)).not.toContain('SECRET_TOKEN')
      expect(Object.keys(result.env)).not.toContain('UNRELATED')
    })

    test("5.4 a reference in env is the daemon's variable, a doubled dollar is literal", async () => {
      verifies('5.4-reference', '5.4-literal')
      const given = { KEY: `$${'{TOKEN}'}`, MIXED: `a-$${'{TOKEN}'}-b`, LITERAL: `$$${'{TOKEN}'}`, PLAIN: '$TOKEN' }
      const bus = await startBus({ config: config(pool('prints-env', { env: given })), env: { TOKEN: 'hunter2' } })
      const { result } = await (await bus.connect()).ask({ id: 1, method: 'm' })
      expect(result.env).toMatchObject({
        KEY: 'hunter2',
        MIXED: 'a-hunter2-b',
        LITERAL: `$${'{TOKEN}'}`,
        PLAIN: '$TOKEN',
      })
      expect(bus.log.text).not.toContain('hunter2')
    })

    test('5.4 a reference to an unset variable is exit 2 and names it', async () => {
      verifies('5.4-reference', '8.4-exit-2')
      const workspace = testWorkspace()
      const file = workspace.write('bus.json', config(pool('prints-env', { env: { KEY: `$${'{NOT_SET_HERE}'}` } })))
      const done = await runBus(['--config', file], { workspace })
      expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('NOT_SET_HERE')])
    })

    test('5.4 inherit_env hands over everything', async () => {
      verifies('5.4-inherit')
      const worker = pool('prints-env', { inherit_env: true, env: { GIVEN: 'yes' } })
      const bus = await startBus({ config: config(worker), env: { UNRELATED: 'x' } })
      const { result } = await (await bus.connect()).ask({ id: 1, method: 'm' })
      expect(result.env).toMatchObject({ GIVEN: 'yes', UNRELATED: 'x' })
    })

    test('5.4 cwd is honoured', async () => {
      verifies('5.4-cwd')
      const workspace = testWorkspace()
      const bus = await startBus({ config: config(pool('prints-cwd', { cwd: workspace.home })), workspace })
      const { result } = await (await bus.connect()).ask({ id: 1, method: 'm' })
      expect(realpathSync(result.cwd)).toBe(workspace.home)
    })

    test('5.4 a relative cwd is relative to the config file', async () => {
      verifies('5.4-cwd')
      const bus = await startBus({ config: config(pool('prints-cwd', { cwd: 'home' })) })
      const { result } = await (await bus.connect()).ask({ id: 1, method: 'm' })
      expect(realpathSync(result.cwd)).toBe(bus.workspace.home)
    })

    test('5.4 a limit of a pool holds for that pool only', async () => {
      verifies('5.4-pool-limits', '8.1-override', '8.1-pool-input')
      const pools = [
        pool('big-answers', { id: 'narrow', limits: { max_input_buffer: 1_000 } }),
        pool('big-answers', { id: 'wide' }),
      ]
      const bus = await startBus({ config: config(pools) })
      const client = await bus.connect()
      const ask = (to: string, id: number) => client.ask({ id, method: 'm', pool: to, params: { bytes: 1_001 } })
      expect(await ask('wide', 1)).toMatchObject({ result: {} })
      expect(await ask('narrow', 2)).toMatchObject({ error: { code: -32603 } })
    })

    test('3.3 a worker is a child with pipes, spawned without a shell', async () => {
      verifies('3.3-pipes', '3.3-no-shell')
      const args = ['$(touch pwned)', ';touch pwned', '*', '`touch pwned`', '', 'a b', '"', '$HOME']
      const bus = await startBus({ config: config(pool('prints-cwd', { args })) })
      const { result } = await (await bus.connect()).ask({ id: 1, method: 'm' })
      expect(result.argv).toEqual(args)
      expect(result.ppid).toBe(bus.pid)
      const fds = descriptorsOf(result.pid)
      for (const fd of [0, 1, 2]) expect(fds.get(fd)).toMatch(kind === 'fifo' ? /\(deleted\)$/ : /^(pipe|socket):/)
      expect(fds.get(0)).not.toBe(fds.get(1))
      expect(bus.workspace.read('pwned')).toBe('')
    })

    test('5.4 a worker inherits no descriptor of the bus but its three', async () => {
      verifies('5.4-descriptors')
      const bus = await startBus({ config: config(pool('lists-fds', { instances: 3 })), doors: ['unix', 'tcp'] })
      const clients = [await bus.connect('unix:'), await bus.connect('tcp:')]
      const before = await bus.allReady()
      process.kill(before.workers[0]!.pid, 'SIGKILL')
      const { workers } = await bus.statusWhere(
        'the worker is back',
        ({ workers }) => workers.every((each) => each.state === 'ready') && workers.some((each) => each.restarts === 1),
      )
      const ofTheBus = new Set([...descriptorsOf(bus.pid).values()].filter((each) => /^(socket|pipe):/.test(each)))
      for (const { pid } of workers) {
        const beyond = [...descriptorsOf(pid)].filter(([fd]) => fd > 2)
        expect(beyond.filter(([, target]) => ofTheBus.has(target) || target.startsWith('socket:'))).toEqual([])
      }
      const answer = await clients[0]!.ask({ id: 1, method: 'm' })
      expect(answer.result.fds.length).toBeGreaterThan(2)
    })

    test('5.4 a worker has its own process group', async () => {
      verifies('5.4-group')
      const bus = await startBus({ config: config(pool('prints-cwd', { instances: 2 })) })
      const client = await bus.connect()
      const answers = [await client.ask({ id: 1, method: 'm' }), await client.ask({ id: 2, method: 'm' })]
      const groups = new Set(answers.map((each) => each.result.pgid))
      expect(groups.size).toBe(2)
      expect(groups).not.toContain(groupOf(bus.pid))
      for (const { result } of answers) expect(result.pgid).toBe(result.pid)
    })

    test('5.4 the whole group ends with its worker', async () => {
      verifies('5.4-group', '7.1-group-ended')
      const bus = await startBus({ config: config(pool('forks-a-grandchild')) })
      const client = await bus.connect()
      const { result } = await client.ask({ id: 1, method: 'm' })
      expect(isAlive(result.grandchild)).toBe(true)
      expect(await client.ask({ id: 2, method: 'die' })).toMatchObject({ error: { data: { reason: 'worker_exited' } } })
      await eventually('the grandchild to be gone', () => !isAlive(result.grandchild), 6_000)
    })

    test('5.4 after a SIGKILL of the bus all groups are gone within 3 s', async () => {
      verifies('5.4-sigkill')
      const bus = await startBus({ config: config(pool('forks-a-grandchild', { instances: 2 })) })
      const client = await bus.connect()
      const pids: number[] = []
      for (const id of [1, 2]) {
        const { result } = await client.ask({ id, method: 'm' })
        pids.push(result.pid, result.grandchild)
      }
      expect(pids.filter(isAlive)).toHaveLength(4)
      const began = Date.now()
      bus.kill()
      await eventually('every process of the groups to be gone', () => !pids.some(isAlive), 3_000)
      expect(Date.now() - began).toBeLessThan(3_000)
    })
  })

  describe('slots', () => {
    test('3.3 the id names the slot, the generation its process', async () => {
      verifies('3.3-generation', '3.3-integer-id', '3.1-monitors')
      const bus = await startBus({ config: config(pool('echo', { instances: 2 })) })
      const before = (await bus.allReady()).workers
      process.kill(before[1]!.pid, 'SIGKILL')
      const { workers } = await bus.statusWhere(
        'the slot has another process',
        ({ workers }) => workers.every((each) => each.state === 'ready') && workers[1]!.pid !== before[1]!.pid,
      )
      expect(workers.map((each) => each.id)).toEqual(before.map((each) => each.id))
      expect(workers.map((each) => each.generation - before.find(({ id }) => id === each.id)!.generation)).toEqual([
        0, 1,
      ])
      expect(workers.map((each) => each.restarts)).toEqual([0, 1])
    })

    test('3.3 what belonged to one generation is not taken for the next', async () => {
      verifies('3.3-tables-key-on-both', '3.4-ends-with-worker')
      const bus = await startBus({ config: config(pool('dies-on-request')) })
      const client = await bus.connect()
      await client.ask({ id: 1, method: 'm', sessionId: 's' })
      await client.ask({ id: 2, method: 'die' })
      const fresh = await client.ask({ id: 3, method: 'm' })
      expect(fresh).toMatchObject({ result: {} })
      const lost = await client.ask({ id: 4, method: 'm', sessionId: 's' })
      expect(lost).toMatchObject({ error: { code: -32002, data: { reason: 'session_lost' } } })
    })

    test.each(['SIGTERM', 'the end of its stdin'])('3.3 the echo agent ends within 1 s of %s', async (cause) => {
      verifies('3.3-shipped-echo-ends')
      const bus = await startBus({ config: { pools: [{ id: 'echo', agent: 'echo', instances: 1 }] } })
      const client = await bus.connect()
      await client.ask({ id: 1, method: 'm' })
      const { pid } = (await bus.status()).workers[0]!
      if (cause === 'SIGTERM') process.kill(pid, 'SIGTERM')
      else bus.signal('SIGTERM')
      await eventually('the agent to be gone', () => !isAlive(pid), 1_000)
    })

    test('8.5 lines of a worker on stderr are not payload: they appear at the default level', async () => {
      verifies('8.5-level')
      const bus = await startBus({ config: config(pool('stderr-noise')) })
      const line = await bus.log.line(/from stderr/)
      expect(levelOf(line)).toBeGreaterThanOrEqual(30)
    })
  })
})
