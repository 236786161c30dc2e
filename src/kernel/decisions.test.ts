/** Decisions of the kernel that neither the conformance suite nor the simulation pins down, one by one. */
import { expect, it } from 'vitest'
import { DIALECTS } from '../dialects/index.ts'
import { Bus } from './bus.ts'
import type { Action, BusEvent, WorkerProcessId } from './events.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { BusSpec, ClientId, PoolSpec, WorkerId } from './vocabulary.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a peer says has no type; tests look into it
type Message = any

const POOL: PoolSpec = {
  id: 'p',
  instances: 1,
  maxInstances: 4,
  sharing: 'shared',
  protocol: 'plain',
  era: 'auto',
  restart: 'always',
  startTimeoutMs: 60_000,
  hangTimeoutMs: 0,
  limits: DEFAULT_LIMITS,
  trace: false,
  revision: '1',
}
const [ANNA, BERT, CARL] = [1, 2, 3] as [ClientId, ClientId, ClientId]

/** A bus with these pools, whose workers start at once; what each peer was sent and what was done is kept. */
class Rig {
  nowMs = 1_000
  readonly done: Action[] = []
  readonly #bus: Bus
  readonly #heard = new Map<string, Message[]>()
  readonly #processes = new Map<WorkerId, WorkerProcessId>()

  constructor(pools: readonly Partial<PoolSpec>[], spec: Partial<BusSpec> = {}) {
    const whole = pools.map((pool) => ({ ...POOL, ...pool }))
    this.#bus = new Bus({ pools: whole, defaultPool: undefined, limits: DEFAULT_LIMITS, ...spec }, DIALECTS, () => 0.5)
    this.#perform(this.#bus.start(this.nowMs))
    for (const client of [ANNA, BERT, CARL]) this.apply({ type: 'client-opened', client, door: 'unix' })
  }

  apply(event: BusEvent): void {
    this.#perform(this.#bus.apply(event, this.nowMs))
    for (let writes = this.#bus.takeWrites(); writes.length > 0; writes = this.#bus.takeWrites())
      for (const write of writes) {
        const lines = Buffer.concat(write.buffers).toString().split('\n').filter(Boolean)
        this.#at(`${write.kind} ${write.id}`).push(...lines.map((line) => JSON.parse(line)))
        this.#perform(this.#bus.wrote(write, 0, this.nowMs))
      }
  }

  send(client: ClientId, message: object): void {
    this.apply({ type: 'client-received', client, bytes: Buffer.from(`${JSON.stringify(message)}\n`) })
  }

  says(worker: number, message: object): void {
    const bytes = Buffer.from(`${JSON.stringify(message)}\n`)
    this.apply({ type: 'worker-received', ...this.#processes.get(worker as WorkerId)!, bytes })
  }

  dies(worker: number, code: number | null = 1): void {
    const of = this.#processes.get(worker as WorkerId)!
    this.apply({ type: 'worker-silent', ...of, pipe: 'stdout' })
    this.apply({ type: 'worker-exited', ...of, code, signal: null })
  }

  pass(ms: number): void {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; this.apply({ type: 'tick' }))
      this.nowMs = Math.min(endMs, Math.max(this.nowMs + 1, this.#bus.nextDeadlineMs() ?? endMs))
  }

  /** What a client has heard with this id. */
  heard(client: ClientId, id: unknown): Message {
    return this.#at(`client ${client}`).find((line) => line.id === id)
  }

  all(client: ClientId): readonly Message[] {
    return this.#at(`client ${client}`)
  }

  at(worker: number): readonly Message[] {
    return this.#at(`worker ${worker}`)
  }

  reason(client: ClientId, id: unknown): string | undefined {
    return this.heard(client, id)?.error?.data?.reason
  }

  get snapshot(): ReturnType<Bus['snapshot']> {
    return this.#bus.snapshot()
  }

  #at(peer: string): Message[] {
    if (!this.#heard.has(peer)) this.#heard.set(peer, [])
    return this.#heard.get(peer)!
  }

  #perform(actions: readonly Action[]): void {
    this.done.push(...actions)
    for (const action of actions) {
      if (action.do !== 'spawn-worker') continue
      const of = { worker: action.worker, generation: action.generation }
      this.#processes.set(action.worker, of)
      this.apply({ type: 'worker-spawned', ...of, pid: 7 })
    }
  }
}

it('6.4 a session that two clients have loaded at workers of their own is a third one’s of nobody', () => {
  const rig = new Rig([{ sharing: 'isolated', protocol: 'acp' }])
  for (const [client, worker] of [
    [ANNA, 0],
    [BERT, 1],
  ] as const) {
    rig.send(client, { id: 1, method: 'initialize', params: { protocolVersion: 1 } })
    rig.says(worker, { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } })
    rig.send(client, { id: 2, method: 'session/load', params: { sessionId: 'S' } })
    rig.says(worker, { id: 2, result: {} })
  }
  expect(rig.heard(BERT, 2).result).toEqual({})
  rig.send(CARL, { id: 1, method: 'initialize', params: { protocolVersion: 1 } })
  rig.says(2, { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } })
  rig.send(CARL, { id: 2, method: 'session/prompt', params: { sessionId: 'S', prompt: [] } })
  expect(rig.reason(CARL, 2)).toBe('session_not_owned')
})
