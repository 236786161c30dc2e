/** One member as the bus lists it, on a clock of the test (contract 13.8, 13.10). */
import { beforeEach, describe, expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import type { WorkerState } from '../kernel/lifecycle.ts'
import { MemberList } from './member-list.ts'
import type { AggregatePort } from './port.ts'

type Request = { readonly id?: string; readonly method: string; readonly params?: { readonly cursor?: string } }
type Result = (request: Request) => object | undefined

interface Alarm {
  readonly atMs: number
  readonly run: () => void
}

const WELCOME = { protocolVersion: '2025-11-25', capabilities: { tools: {} } }
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A member that answers by a table, and the clock of its bus. */
class Stage {
  nowMs = 0
  state: WorkerState = 'ready'
  changes = 0
  readonly asked: Request[] = []
  readonly logged: string[] = []
  tools: Result = () => ({ tools: [{ name: 'a' }] })
  say: (line: object) => void = () => {}
  readonly list: MemberList
  #alarms: Alarm[] = []

  constructor() {
    const port: Partial<AggregatePort> = {
      open: (_pool, _client, received) => {
        this.say = (message) => received(Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`))
        return { id: 1, send: (line) => this.#take(JSON.parse(line.toString())), leave: () => {} }
      },
      factsOf: () => ({ sharing: 'shared', era: 'auto' }),
      workersOf: () => [{ state: this.state, generation: 1 }],
      nowMs: () => this.nowMs,
      after: (delayMs, run) => this.#after(delayMs, run),
      log: (_level, text) => void this.logged.push(text),
    }
    this.list = new MemberList(port as AggregatePort, 'm', () => {
      this.changes++
    })
  }

  #after(delayMs: number, run: () => void): () => void {
    const alarm = { atMs: this.nowMs + delayMs, run }
    this.#alarms.push(alarm)
    return () => {
      this.#alarms = this.#alarms.filter((each) => each !== alarm)
    }
  }

  #take(request: Request): void {
    this.asked.push(request)
    const { id, method } = request
    if (id === undefined) return
    const result = method === 'initialize' ? WELCOME : this.tools(request)
    if (result !== undefined) queueMicrotask(() => this.say({ id, result }))
  }

  /** Time goes by, second by second, and the member is looked at each time. */
  async pass(ms: number): Promise<void> {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; ) {
      this.nowMs = Math.min(this.nowMs + 1_000, endMs)
      const due = this.#alarms.filter(({ atMs }) => atMs <= this.nowMs)
      this.#alarms = this.#alarms.filter((alarm) => !due.includes(alarm))
      for (const { run } of due) run()
      this.list.watch()
      await settled()
    }
  }

  get names(): string[] | undefined {
    return this.list.known?.lists.tools.map(({ name }) => name)
  }

  times(method: string): number {
    return this.asked.filter((request) => request.method === method).length
  }
}

let stage: Stage
beforeEach(async () => {
  stage = new Stage()
  stage.list.refresh()
  await settled()
})

test('a parked member stays for 30 s, then it goes, and comes back with its worker', async () => {
  verifies('13.8-parked')
  stage.state = 'parked'
  await stage.pass(29_000)
  expect(stage.names).toEqual(['a'])
  await stage.pass(3_000)
  expect(stage.names).toBeUndefined()
  expect(stage.changes).toBe(2)
  stage.state = 'ready'
  await stage.pass(2_000)
  expect(stage.names).toEqual(['a'])
})

test('one that restarts for less is not even told of', async () => {
  verifies('13.8-restart')
  stage.state = 'backing_off'
  await stage.pass(60_000)
  expect(stage.names).toEqual(['a'])
  expect(stage.changes).toBe(1)
})

test('a list that is the same as before is no change', async () => {
  verifies('13.10-changes')
  stage.list.refresh()
  await stage.pass(2_000)
  expect(stage.times('tools/list')).toBe(2)
  expect(stage.changes).toBe(1)
  stage.tools = () => ({ tools: [{ name: 'b' }] })
  stage.say({ method: 'notifications/tools/list_changed' })
  await stage.pass(2_000)
  expect(stage.names).toEqual(['b'])
  expect(stage.changes).toBe(2)
})

describe('a list that does not come', () => {
  test('leaves what was known, and is asked for again, less and less often', async () => {
    verifies('13.10-changes')
    stage.tools = () => undefined
    stage.list.refresh()
    await stage.pass(120_000)
    expect(stage.names).toEqual(['a'])
    const asked = stage.times('tools/list')
    expect(asked).toBeGreaterThan(2)
    expect(asked).toBeLessThan(7)
    stage.tools = () => ({ tools: [{ name: 'c' }] })
    await stage.pass(65_000)
    expect(stage.names).toEqual(['c'])
  })
})

describe('a list that does not end', () => {
  const page = (bytes: number): Result => {
    const description = 'x'.repeat(bytes)
    return ({ params }) => {
      const at = Number(params?.cursor ?? 0)
      return { tools: [{ name: `t${at}`, description }], nextCursor: String(at + 1) }
    }
  }

  test.each([
    ['100 pages', page(10), 100],
    ['16 MiB', page(1_000_000), 17],
    ['a cursor that leads to itself', () => ({ tools: [{ name: 'x' }], nextCursor: 'same' }), 2],
  ] as [string, Result, number][])('is cut at %s', async (_what, tools, pages) => {
    verifies('13.8-bounds')
    stage.tools = tools
    stage.asked.length = 0
    stage.list.refresh()
    await stage.pass(1_000)
    for (let n = 0; n < 200; n++) await settled()
    expect(stage.times('tools/list')).toBe(pages)
    expect(stage.names).toHaveLength(pages)
    expect(stage.logged.join()).toContain('it does not end')
  })
})

test.each([
  ['no object', 5],
  ['no list', { tools: { 0: 'x' } }],
  ['nothing', null],
])('a list that is %s is empty, and told', async (_what, result) => {
  verifies('13.8-bounds')
  stage.tools = () => result as object
  stage.list.refresh()
  await stage.pass(1_000)
  expect(stage.names).toEqual([])
  expect(stage.logged.join()).toContain('no list')
})
