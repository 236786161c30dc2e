/** The variables of a principal: in the workers that were started for it, and nowhere else (contract 9.22, 9.26). */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { digestOf, makeToken } from '../../src/access/token.ts'
import { says } from '../../src/agents/demo-endpoint/reply.ts'
import { type Endpoint, startEndpoint } from '../../src/agents/demo-endpoint/server.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus, testWorkspace, type WorkerStatus } from '../support/bus.ts'
import type { LineClient } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { descendantsOf, killHard } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'

const TOKENS = { alice: makeToken(), bob: makeToken() }
const KEYS = { alice: 'alice-key-in-the-file', bob: 'bob-key-of-the-bus' }

const INITIALIZE = { jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: 1 } }

type Name = keyof typeof TOKENS

interface House {
  readonly bus: Bus
  /** A connection of this principal, or of nobody in particular. */
  comes(name?: Name): Promise<LineClient>
  /** The access file has these variables now. */
  give(environments: Partial<Record<Name, object>>): void
  workers(): Promise<WorkerStatus[]>
}

async function open(pools: readonly object[], args: readonly string[] = [], anonymous = {}): Promise<House> {
  const workspace = testWorkspace()
  const give = (environments: Partial<Record<Name, object>>): void => {
    const principals = (['alice', 'bob'] as const).map((name) => ({
      name,
      pools: ['*'],
      tokens: [{ sha256: digestOf(TOKENS[name]) }],
      ...(environments[name] === undefined ? {} : { env: environments[name] }),
    }))
    workspace.writeOwn('access.json', { principals })
  }
  give({ alice: { SERVICE_KEY: KEYS.alice }, bob: { SERVICE_KEY: `\${BOB_KEY}` } })
  const access = { file: 'access.json', anonymous: { pools: ['*'], ...anonymous }, audit: 'audit.log' }
  const bus = await startBus({
    config: config(pools, {}, { access }),
    doors: ['tcp'],
    env: { BOB_KEY: KEYS.bob },
    args: ['--log-level', 'debug', ...args],
    workspace,
  })
  const comes = async (name?: Name): Promise<LineClient> => {
    const client = await bus.connect('tcp')
    const opened = name && (await client.ask({ id: 'open', method: 'bus::open', params: { token: TOKENS[name] } }))
    if (name !== undefined) expect(opened).toMatchObject({ result: { principal: name } })
    return client
  }
  return { bus, comes, give, workers: async () => (await bus.status()).workers }
}

async function startScripted(): Promise<Endpoint> {
  const endpoint = await startEndpoint({ script: () => says('hello') })
  onTestFinished(() => endpoint.close())
  return endpoint
}

/** What the system says that a process was started with. */
function environmentOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
}

const keysIn = (pid: number): string[] => environmentOf(pid).filter((each) => /^[A-Z_]+_KEY=/.test(each))

/** The keys of all workers, as the system tells them; none twice is not promised, so they are in order. */
async function keysOfAll({ bus }: House): Promise<string[]> {
  const { workers } = await bus.allReady()
  return workers.map(({ pid }) => keysIn(pid).join()).sort()
}

async function keySeenBy(client: LineClient, id: number, pool?: string): Promise<unknown> {
  const message = { id, method: 'm', ...(pool === undefined ? {} : { pool }) }
  return (await client.ask(message)).result.env.SERVICE_KEY
}

describe('9.22 isolated workers', () => {
  test('have the variables of their principal over those of the pool, and of nobody else', async () => {
    verifies('9.22-isolated', '9.26-env')
    const house = await open([pool('prints-env', { sharing: 'isolated', env: { SERVICE_KEY: 'of-the-pool' } })])
    const [alice, again, bob, nobody] = [
      await house.comes('alice'),
      await house.comes('alice'),
      await house.comes('bob'),
      await house.comes(),
    ]
    expect(await keySeenBy(alice, 1)).toBe(KEYS.alice)
    expect(await keySeenBy(again, 2)).toBe(KEYS.alice)
    expect(await keySeenBy(bob, 3)).toBe(KEYS.bob)
    expect(await keySeenBy(nobody, 4)).toBe('of-the-pool')
    const ofPool = 'SERVICE_KEY=of-the-pool'
    expect(await keysOfAll(house)).toEqual([
      ...[`SERVICE_KEY=${KEYS.alice}`, `SERVICE_KEY=${KEYS.alice}`, `SERVICE_KEY=${KEYS.bob}`, ofPool, ofPool],
    ])
    for (const client of [alice, again, bob]) client.close()
    await house.bus.statusWhere('only the two of nobody in particular are left', ({ workers }) => workers.length === 2)
    expect(await keysOfAll(house)).toEqual([ofPool, ofPool])
  })

  test('of nobody in particular have the variables of access.anonymous', async () => {
    verifies('9.22-isolated')
    const anonymous = { env: { SERVICE_KEY: `\${BOB_KEY}` } }
    const house = await open([pool('prints-env', { sharing: 'isolated' })], [], anonymous)
    expect(await keySeenBy(await house.comes(), 1)).toBe(KEYS.bob)
    expect(await keysOfAll(house)).toEqual(['', `SERVICE_KEY=${KEYS.bob}`])
  })

  test('that die are followed by one with the same variables; a changed file is for those that start later', async () => {
    verifies('9.22-changed')
    const house = await open([pool('prints-env', { sharing: 'isolated' })])
    const alice = await house.comes('alice')
    expect(await keySeenBy(alice, 1)).toBe(KEYS.alice)
    const own = (await house.workers()).find(({ pid }) => keysIn(pid).length > 0)!
    killHard(own.pid)
    await house.bus.statusWhere('it is gone', ({ workers }) => workers.every(({ pid }) => pid !== own.pid))
    expect(await keySeenBy(alice, 2)).toBe(KEYS.alice)
    house.give({ alice: { SERVICE_KEY: 'another' } })
    await eventually('the change to be seen', () => house.bus.log.text.includes('the access file has changed'))
    expect(await keySeenBy(alice, 3)).toBe(KEYS.alice)
    expect(await keySeenBy(await house.comes('alice'), 4)).toBe('another')
  })

  test('of another pool than the one that the variables are for have none of them', async () => {
    verifies('9.22-pool')
    const [one, other] = ['one', 'other'].map((id) => pool('prints-env', { id, sharing: 'isolated' }))
    const house = await open([one!, other!])
    house.give({
      alice: { one: { SERVICE_KEY: 'for-one' } },
      bob: { ALL: '1', SERVICE_KEY: 'all', other: { SERVICE_KEY: 'o' } },
    })
    await eventually('the change to be seen', () => house.bus.log.text.includes('the access file has changed'))
    const [alice, bob] = [await house.comes('alice'), await house.comes('bob')]
    expect([await keySeenBy(alice, 1, 'one'), await keySeenBy(alice, 2, 'other')]).toEqual(['for-one', undefined])
    expect([await keySeenBy(bob, 3, 'one'), await keySeenBy(bob, 4, 'other')]).toEqual(['all', 'o'])
  })
})

/** The key with which the endpoint was asked in a turn of this client. */
async function turn(client: LineClient, { requests }: Endpoint): Promise<string | undefined> {
  const before = requests.length
  await client.ask(INITIALIZE)
  const made = { jsonrpc: '2.0', id: 'n', method: 'session/new', params: { cwd: '/', mcpServers: [] } }
  const { sessionId } = (await client.ask(made)).result
  const params = { sessionId, prompt: [{ type: 'text', text: 'hi' }] }
  const answer = await client.ask({ jsonrpc: '2.0', id: 'p', method: 'session/prompt', params })
  expect(answer).toMatchObject({ result: { stopReason: 'end_turn' } })
  return requests[before]?.headers.authorization
}

test('9.22 a call of an agent in an isolated pool is answered with the variables of its caller', async () => {
  verifies('9.22-calls')
  const house = await open([pool('prints-env', { id: 'agent', sharing: 'isolated', aio: { type: 'stdio' } })])
  const [alice, bob, nobody] = [await house.comes('alice'), await house.comes('bob'), await house.comes()]
  const keyOfCall = async (client: LineClient): Promise<unknown> =>
    (await client.ask({ jsonrpc: '2.0', id: 1, method: 'agent::m' })).result.env.SERVICE_KEY
  expect([await keyOfCall(alice), await keyOfCall(nobody), await keyOfCall(bob)]).toEqual([
    ...[KEYS.alice, undefined, KEYS.bob],
  ])
})

test('9.22 the process of a one-shot call has the variables of its caller, and help those of nobody', async () => {
  verifies('9.22-calls')
  const house = await open([pool('prints-env', { id: 'agent', aio: { type: 'stdio', mode: 'oneshot' } })])
  const [alice, bob, nobody] = [await house.comes('alice'), await house.comes('bob'), await house.comes()]
  const keyOf = async (client: LineClient, method: string): Promise<unknown> =>
    (await client.ask({ jsonrpc: '2.0', id: 1, method })).result.env?.SERVICE_KEY
  expect([await keyOf(alice, 'agent::m'), await keyOf(nobody, 'agent::m'), await keyOf(bob, 'agent::m')]).toEqual([
    ...[KEYS.alice, undefined, KEYS.bob],
  ])
  const helped = await alice.ask({ jsonrpc: '2.0', id: 2, method: 'agent::help' })
  expect(JSON.stringify(helped)).not.toContain(KEYS.alice)
})

test('9.26 no value of env is in an argument list, a log, the status, the audit, a trace or a recording', async () => {
  verifies('9.26-env')
  const endpoint = await startScripted()
  const env = { OPENAI_BASE_URL: endpoint.url, OPENAI_MODEL: 'scripted' }
  const chat = { id: 'chat', agent: 'openai', sharing: 'isolated', trace: true, env }
  const house = await open([chat], ['--record', 'night.ndjson'])
  const { bus } = house
  const [alice, bob] = [await house.comes('alice'), await house.comes('bob')]
  for (const client of [alice, bob]) await turn(client, endpoint)
  const status = JSON.stringify(await bus.status())
  const argv = [bus.pid, ...descendantsOf(bus.pid)].map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  const traceOf = async (caller: string): Promise<string> => {
    const found = await bus.run(['trace', 'ls', '--caller', caller, '--json', '--control', bus.control])
    const [{ trace_id: id }] = JSON.parse(found.stdout).traces
    return (await bus.run(['trace', 'show', id, '--json', '--control', bus.control])).stdout
  }
  const traces = [await traceOf('alice'), await traceOf('bob')]
  for (const client of [alice, bob]) client.close()
  expect((await bus.stop()).code).toBe(0)
  const audit = bus.workspace.read('audit.log')
  const recording = bus.workspace.read('night.ndjson')
  for (const told of [audit, recording, traces[0]]) expect(told).toContain('alice')
  for (const told of [status, ...argv, ...traces, ...filesOf(bus.workspace.folder), bus.log.text])
    for (const key of Object.values(KEYS)) expect(told).not.toContain(key)
})

/** All that the bus has written, and its configuration; the access file is where one of the values comes from. */
function filesOf(folder: string): string[] {
  const files = (readdirSync(folder, { recursive: true }) as string[]).map((name) => join(folder, name))
  const written = files.filter((file) => statSync(file).isFile() && basename(file) !== 'access.json')
  return written.map((file) => readFileSync(file, 'latin1'))
}

describe('9.22 workers of the OpenAI agent', () => {
  const OF_POOL = 'key-of-the-pool'

  async function openChat(sharing: string): Promise<House & { readonly endpoint: Endpoint }> {
    const endpoint = await startScripted()
    const env = { OPENAI_BASE_URL: endpoint.url, OPENAI_MODEL: 'scripted', OPENAI_API_KEY: OF_POOL }
    const house = await open([{ id: 'chat', agent: 'openai', sharing, env, max_instances: 2 }])
    house.give({ alice: { chat: { OPENAI_API_KEY: KEYS.alice } }, bob: { OPENAI_API_KEY: KEYS.bob } })
    await eventually('the change to be seen', () => house.bus.log.text.includes('the access file has changed'))
    return { ...house, endpoint }
  }

  test.each(['shared', 'lease'])(
    '%s: a principal has one of its own, that ends with its last client',
    async (sharing) => {
      verifies('9.22-openai')
      const house = await openChat(sharing)
      const { bus, endpoint } = house
      const [alice, again, nobody] = [await house.comes('alice'), await house.comes('alice'), await house.comes()]
      expect(await turn(alice, endpoint)).toBe(`Bearer ${KEYS.alice}`)
      expect(await turn(again, endpoint)).toBe(`Bearer ${KEYS.alice}`)
      expect(await turn(nobody, endpoint)).toBe(`Bearer ${OF_POOL}`)
      expect(await keysOfAll(house)).toEqual([`OPENAI_API_KEY=${KEYS.alice}`, `OPENAI_API_KEY=${OF_POOL}`])
      const bob = await house.comes('bob')
      const refused = await bob.ask(INITIALIZE)
      expect(refused).toMatchObject({
        error: { data: { reason: 'no_worker', why: 'all 2 workers that max_instances allows are in use' } },
      })
      alice.close()
      expect(await turn(again, endpoint)).toBe(`Bearer ${KEYS.alice}`)
      again.close()
      await bus.statusWhere('her worker has ended', ({ workers }) => workers.length === 1)
      expect(await turn(bob, endpoint)).toBe(`Bearer ${KEYS.bob}`)
      expect(await turn(nobody, endpoint)).toBe(`Bearer ${OF_POOL}`)
    },
  )
})
