/** The overview of a real bus (contract 15.7): what is wrong is there with its cause, and gone when that has gone. */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { startHouse } from './access-harness.ts'
import { logIn, Visitor } from './console-harness.ts'

interface Problem {
  readonly id: string
  readonly what: string
  readonly why: string | null
}

const problemsOf = async (visitor: Visitor): Promise<readonly Problem[]> =>
  (await visitor.get('overview')).json.problems

/** The problem of an id, once it is there; `undefined` wanted: once it has gone. */
function untilProblem(visitor: Visitor, id: string): Promise<Problem> {
  return eventually(`the problem ${id}`, async () => (await problemsOf(visitor)).find((each) => each.id === id))
}

async function untilNone(visitor: Visitor): Promise<void> {
  await eventually('all to be well', async () => (await problemsOf(visitor)).length === 0 || undefined)
}

test('15.7 workers that keep ending and such that cannot be started, with their last words', async () => {
  verifies('15.7-workers')
  const pools = [
    { id: 'dies', command: process.execPath, args: ['-e', 'console.error("no key"); process.exit(3)'], instances: 1 },
    { id: 'missing', command: './not-there', instances: 1 },
    pool('echo'),
  ]
  const bus = await startBus({ config: config(pools), doors: ['http'] })
  const visitor = await logIn(bus)
  const dies = await eventually('the last words', async () => {
    const found = (await problemsOf(visitor)).find(({ id }) => id.startsWith('worker/dies/'))
    return found?.why?.includes('no key') ? found : undefined
  })
  expect(dies.why).toMatch(/exit code 3/)
  const missing = await eventually('what cannot be started', async () =>
    (await problemsOf(visitor)).find(({ id }) => id.startsWith('worker/missing/')),
  )
  expect(missing.what).toMatch(/^missing\.\d+ cannot be started$/)
  await untilProblem(visitor, 'pool/dies')
  // The same once it is parked.
  const parked = await eventually('a parked worker', async () =>
    (await problemsOf(visitor)).find(
      ({ id, why }) => id.startsWith('worker/missing/') && why?.includes('max_restarts'),
    ),
  )
  expect(parked.what).toMatch(/cannot be started$/)
})

test('15.7 a file that has changed or has mistakes is said, and no more once it is loaded', async () => {
  verifies('15.7-file')
  const bus = await startBus({ config: config(pool('echo')), doors: ['http'] })
  const visitor = await logIn(bus)
  await untilNone(visitor)
  const file = (await visitor.get('config')).json.file as string
  const name = file.split('/').at(-1)!
  bus.workspace.write(name, JSON.stringify(config([pool('echo'), pool('echo', { id: 'more' })])))
  expect((await untilProblem(visitor, 'file')).why).toContain('more')
  expect((await visitor.post('reload')).status).toBe(200)
  await untilNone(visitor)
  bus.workspace.write(name, '{ "pools": [{ "id": 7 }] }')
  await eventually('the mistake', async () =>
    (await problemsOf(visitor)).find(({ what }) => what.includes('has mistakes')),
  )
})

test('15.7 a token that ends soon is said to admins alone', async () => {
  verifies('15.7-ending')
  const house = await startHouse({ principals: { ann: { role: 'admin' }, oz: { role: 'observer' } }, doors: ['http'] })
  const soon = new Date(Date.now() + 3 * 24 * 60 * 60_000).toISOString()
  await house.change((rows) => {
    const [token] = rows.get('oz')!.tokens
    rows.get('oz')!.tokens = [{ ...token, expires: soon }]
  })
  const visit = (name: string) => new Visitor(house.bus, { authorization: `Bearer ${house.tokens[name]}` })
  expect(await untilProblem(visit('ann'), 'expiry/the token of oz')).toMatchObject({
    what: `the token of oz ends on ${soon.slice(0, 10)}`,
  })
  expect(await problemsOf(visit('oz'))).toEqual([])
})

test('15.18 one worker starts anew, its neighbour does not notice, and what it owed is answered', async () => {
  verifies('15.18-restart')
  const silent = pool('silent', { instances: 2, restart: 'never' })
  const bus = await startBus({ config: config(silent), doors: ['http', 'unix'] })
  const visitor = await logIn(bus)
  const workers = async () =>
    (await visitor.get('overview')).json.workers as { id: number; pid: number; state: string; outstanding: number }[]
  const client = await bus.connect()
  client.send({ id: 1, method: 'wait' })
  client.send({ id: 2, method: 'wait' })
  await eventually('a request at each', async () => (await workers()).every((each) => each.outstanding === 1))
  const before = await workers()
  expect((await visitor.post('workers/silent/0/restart')).status).toBe(200)
  expect(await client.next()).toMatchObject({ error: { data: { reason: 'worker_exited' } } })
  await eventually('another process', async () => {
    const [first] = await workers()
    return (first!.state === 'ready' && first!.pid !== before[0]!.pid) || undefined
  })
  expect((await workers())[1]).toMatchObject({ pid: before[1]!.pid, outstanding: 1 })
  expect((await visitor.post('workers/silent/7/restart')).status).toBe(404)
  expect((await visitor.post('workers/other/0/restart')).status).toBe(404)
})
