import { describe, expect, test } from 'vitest'
import { identityOf, KernelRig } from '../../test/support/kernel-rig.ts'

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

class World extends KernelRig {
  #clients = 0

  constructor() {
    super({ pools: [{ protocol: 'mcp', era: 'modern' }] })
  }

  /** One POST of the principal: a client that comes with one message. */
  ask(principal: string, method: string, params: object): number {
    const client = ++this.#clients
    this.connects(client, { door: 'http', identity: identityOf(principal), carriesMessages: true, isBrief: true })
    this.send(client, { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } })
    return client
  }

  answers(result: object): void {
    this.says(0, { jsonrpc: '2.0', id: this.at(0).at(-1).id, result })
  }
}

describe('a task that was begun by a client which goes with its answer (contract 10.11)', () => {
  test("is its principal's: the next client of the same may ask for it, one of another not", () => {
    const world = new World()
    const first = world.ask('alice', 'tools/call', { name: 't' })
    world.answers({ resultType: 'task', taskId: 'T' })
    expect(world.all(first)).toMatchObject([{ id: 1, result: { taskId: 'T' } }])
    world.goes(first, { isSettled: true })
    const second = world.ask('alice', 'tasks/get', { taskId: 'T' })
    expect(world.at(0).at(-1).method).toBe('tasks/get')
    world.answers({ status: 'working' })
    expect(world.all(second)).toMatchObject([{ id: 1, result: { status: 'working' } }])
    const foreign = world.ask('mallory', 'tasks/get', { taskId: 'T' })
    expect(world.all(foreign)).toMatchObject([{ id: 1, error: { data: { reason: 'task_not_owned' } } }])
  })
})
