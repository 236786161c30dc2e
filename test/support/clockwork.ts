/**
 * The kernel on a clock of the test's own, for waits that are too long to be waited for. Only these tests look inside;
 * everything else in the suite judges the program from outside.
 */
import { DIALECTS } from '../../src/dialects/index.ts'
import { Bus } from '../../src/kernel/bus.ts'
import type { Action, BusEvent } from '../../src/kernel/events.ts'
import { DEFAULT_LIMITS, type Limits } from '../../src/kernel/limits.ts'
import type { ClientId, PoolSpec } from '../../src/kernel/vocabulary.ts'

type Spawn = Extract<Action, { do: 'open-worker' }>

export class Clockwork {
  nowMs = 1_000
  readonly spawns: Array<Spawn & { atMs: number }> = []
  readonly said: Array<{ atMs: number; line: string }> = []
  readonly #bus: Bus

  /** One pool of one worker; `chance` is what every throw of the dice gives. */
  constructor(limits: Partial<Limits>, chance: number) {
    const all = { ...DEFAULT_LIMITS, ...limits }
    const pool: PoolSpec = {
      id: 'p',
      instances: 1,
      maxInstances: 1,
      sharing: 'shared',
      protocol: 'plain',
      era: 'auto',
      restart: 'always',
      startTimeoutMs: 60_000,
      hangTimeoutMs: 0,
      limits: all,
      trace: false,
      revision: '1',
    }
    this.#bus = new Bus({ pools: [pool], defaultPool: undefined, limits: all }, DIALECTS, () => chance)
    this.#note(this.#bus.start(this.nowMs))
  }

  get spawn(): Spawn & { atMs: number } {
    return this.spawns.at(-1)!
  }

  apply(event: BusEvent): void {
    this.#note(this.#bus.apply(event, this.nowMs))
  }

  /** The worker that was spawned last runs. */
  run(): void {
    const { worker, generation } = this.spawn
    this.apply({ type: 'worker-opened', worker, generation })
  }

  /** And now it ends, all pipes closed. */
  exit(): void {
    const { worker, generation } = this.spawn
    this.apply({ type: 'worker-silent', worker, generation, pipe: 'stdout' })
    this.apply({ type: 'worker-ended', worker, generation, isClean: false, how: { exitCode: 1, signal: null } })
  }

  connect(client = 1 as ClientId): ClientId {
    this.apply({ type: 'client-opened', client, door: 'unix' })
    return client
  }

  send(client: ClientId, line: string): void {
    this.apply({ type: 'client-received', client, bytes: Buffer.from(`${line}\n`) })
  }

  /** Lets the time pass, with every tick that falls due. */
  advance(ms: number): void {
    const endMs = this.nowMs + ms
    for (let dueMs = this.#bus.nextDeadlineMs(); dueMs !== undefined && dueMs <= endMs; ) {
      this.nowMs = Math.max(this.nowMs, dueMs)
      this.apply({ type: 'tick' })
      const nextMs = this.#bus.nextDeadlineMs()
      dueMs = nextMs === dueMs ? undefined : nextMs
    }
    this.nowMs = endMs
    this.apply({ type: 'tick' })
  }

  /** How long it takes until the next process is spawned. */
  pauseBeforeSpawn(): number {
    const [beganMs, before] = [this.nowMs, this.spawns.length]
    for (let n = 0; n < 1_000 && this.spawns.length === before; n++) {
      const dueMs = this.#bus.nextDeadlineMs()
      if (dueMs === undefined) break
      this.advance(Math.max(0, dueMs - this.nowMs))
    }
    return this.spawn.atMs - beganMs
  }

  #note(actions: readonly Action[]): void {
    for (const action of actions) if (action.do === 'open-worker') this.spawns.push({ ...action, atMs: this.nowMs })
    for (const write of this.#bus.takeWrites()) {
      const text = Buffer.concat(write.buffers).toString()
      if (write.kind === 'client')
        for (const line of text.split('\n').filter(Boolean)) this.said.push({ atMs: this.nowMs, line })
      this.#note(this.#bus.wrote(write, 0, this.nowMs))
    }
  }
}
