import { describe, expect, test } from 'vitest'
import { DIALECTS } from '../dialects/index.ts'
import { Bus } from './bus.ts'
import type { BusEvent } from './events.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { Rights } from './rights.ts'
import type { ClientId, PoolSpec, WorkerId } from './vocabulary.ts'

const POOL: PoolSpec = {
  id: 'p',
  instances: 1,
  maxInstances: 1,
  sharing: 'shared',
  protocol: 'mcp',
  era: 'modern',
  restart: 'always',
  startTimeoutMs: 0,
  hangTimeoutMs: 0,
  limits: DEFAULT_LIMITS,
  trace: false,
  revision: '1',
}
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const RIGHTS: Rights = { role: 'user', pools: ['*'] }

class World {
  readonly #bus = new Bus({ pools: [POOL], defaultPool: undefined, limits: DEFAULT_LIMITS }, DIALECTS, () => 0.5)
  readonly atWorker: { id?: unknown; method?: string }[] = []
  readonly atClient = new Map<number, { id?: unknown; error?: { data: { reason: string } }; result?: unknown }[]>()
  #clients = 0

  constructor() {
    this.#bus.start(0)
    this.#apply({ type: 'worker-opened', worker: 0 as WorkerId, generation: 1 })
  }

  /** One POST of the principal: a client that comes with one message. */
  ask(principal: string, method: string, params: object): number {
    const client = ++this.#clients as ClientId
    const identity = { principal, name: principal, via: 'token', rights: RIGHTS }
    this.atClient.set(client, [])
    this.#apply({ type: 'client-opened', client, door: 'http', identity, carriesMessages: true, isBrief: true })
    this.#tell({ type: 'client-received', client }, { id: 1, method, params: { ...params, _meta: META } })
    return client
  }

  say(message: object): void {
    this.#tell({ type: 'worker-received', worker: 0 as WorkerId, generation: 1 }, message)
  }

  leave(client: number): void {
    this.#apply({ type: 'client-closed', client: client as ClientId, isSettled: true })
  }

  #tell(event: object, message: object): void {
    this.#apply({ ...event, bytes: Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`) } as BusEvent)
  }

  #apply(event: BusEvent): void {
    this.#bus.apply(event, 0)
    for (const write of this.#bus.takeWrites()) {
      const lines = Buffer.concat(write.buffers).toString().split('\n').filter(Boolean)
      const received = write.kind === 'worker' ? this.atWorker : this.atClient.get(write.id)!
      received.push(...lines.map((line) => JSON.parse(line)))
      this.#bus.wrote(write, 0, 0)
    }
  }
}

describe('a task that was begun by a client which goes with its answer (contract 10.11)', () => {
  test("is its principal's: the next client of the same may ask for it, one of another not", () => {
    const world = new World()
    const first = world.ask('alice', 'tools/call', { name: 't' })
    world.say({ id: world.atWorker.at(-1)!.id, result: { resultType: 'task', taskId: 'T' } })
    expect(world.atClient.get(first)).toMatchObject([{ id: 1, result: { taskId: 'T' } }])
    world.leave(first)
    const second = world.ask('alice', 'tasks/get', { taskId: 'T' })
    expect(world.atWorker.at(-1)!.method).toBe('tasks/get')
    world.say({ id: world.atWorker.at(-1)!.id, result: { status: 'working' } })
    expect(world.atClient.get(second)).toMatchObject([{ id: 1, result: { status: 'working' } }])
    const foreign = world.ask('mallory', 'tasks/get', { taskId: 'T' })
    expect(world.atClient.get(foreign)).toMatchObject([{ id: 1, error: { data: { reason: 'task_not_owned' } } }])
  })
})
