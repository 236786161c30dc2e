/**
 * A bus on a clock of the test's own, with clients and workers that do what the test says; what each of them was sent and
 * what was done is kept.
 *
 * It judges nothing, and no time passes unless it is told to. Workers open at once where they are not slow, and everybody
 * reads at once who is not stalled.
 */
import { DIALECTS } from '../../src/dialects/index.ts'
import { Bus } from '../../src/kernel/bus.ts'
import type { Action, BusEvent, WorkerGeneration, Write } from '../../src/kernel/events.ts'
import { DEFAULT_LIMITS, type Limits } from '../../src/kernel/limits.ts'
import type { Identity, Rights } from '../../src/kernel/rights.ts'
import type { BusSpec, ClientId, PoolId, PoolSpec } from '../../src/kernel/vocabulary.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a peer says has no type; tests look into it
export type Message = any
type Did<Do extends Action['do']> = Extract<Action, { do: Do }>
type Told<Type extends BusEvent['type']> = Partial<Extract<BusEvent, { type: Type }>>

/** What is not as usual; a pool has the limits of the bus where it names none. */
export type PoolPart = Partial<Omit<PoolSpec, 'limits'>> & { readonly limits?: Partial<Limits> }
export type BusPart = Partial<Omit<BusSpec, 'pools' | 'limits'>> & {
  readonly pools?: readonly PoolPart[]
  readonly limits?: Partial<Limits>
}

export const [ANNA, BERT, CARL, DORA] = [1, 2, 3, 4] as [ClientId, ClientId, ClientId, ClientId]

export function poolOf(part: PoolPart = {}, limits: Limits = DEFAULT_LIMITS): PoolSpec {
  return {
    id: 'p',
    instances: 1,
    maxInstances: 1,
    sharing: 'shared',
    protocol: 'plain',
    era: 'auto',
    restart: 'always',
    startTimeoutMs: 60_000,
    hangTimeoutMs: 0,
    trace: false,
    revision: '1',
    ...part,
    limits: { ...limits, ...part.limits },
  }
}

export function specOf({ pools = [{}], ...part }: BusPart = {}): BusSpec {
  const limits = { ...DEFAULT_LIMITS, ...part.limits }
  return { defaultPool: undefined, ...part, limits, pools: pools.map((pool) => poolOf(pool, limits)) }
}

/** `chance` is what every throw of the dice gives. */
export function busOf(part: BusPart = {}, chance = 0.5): Bus {
  return new Bus(specOf(part), DIALECTS, () => chance)
}

export function identityOf(principal: string, rights: Partial<Rights> = {}): Identity {
  return { principal, name: principal, via: 'token', rights: { role: 'user', pools: ['*'], ...rights } }
}

export function lineOf(message: object | string): Buffer {
  return Buffer.from(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
}

export class KernelRig {
  nowMs = 1_000
  /** Workers open when they are told to. */
  isSlow: boolean
  readonly bus: Bus
  readonly done: Action[] = []
  readonly started: (Did<'open-worker'> & { readonly atMs: number })[] = []
  /** The clients, and the slots, that do not read: what is written to them stays with the system. */
  readonly stalled = new Set<number | `worker ${number}`>()
  /** The lines that each peer was sent, by `client 1` or `worker 0`, who was sent something first standing first. */
  readonly lines = new Map<string, string[]>()

  /** A class that extends this has none of its own fields yet while the bus starts. */
  constructor(part: BusPart = {}, { isSlow = false, chance = 0.5 } = {}) {
    this.isSlow = isSlow
    this.bus = busOf(part, chance)
    this.#perform(this.bus.start(this.nowMs))
    this.deliver()
  }

  apply(event: BusEvent): void {
    this.#perform(this.bus.apply(event, this.nowMs))
    this.deliver()
  }

  connects(client: number, more: Told<'client-opened'> = {}): void {
    this.apply({ type: 'client-opened', door: 'unix', ...more, client: client as ClientId })
  }

  goes(client: number, more: Told<'client-closed'> = {}): void {
    this.apply({ type: 'client-closed', ...more, client: client as ClientId })
  }

  send(client: number, message: object | string): void {
    this.apply({ type: 'client-received', client: client as ClientId, bytes: lineOf(message) })
  }

  /** What was started last in a slot, or for a pool. */
  of(which: number | PoolId): WorkerGeneration {
    const { worker, generation } = this.started.findLast(({ worker, pool }) => worker === which || pool === which)!
    return { worker, generation }
  }

  get latest(): Did<'open-worker'> & { readonly atMs: number } {
    return this.started.at(-1)!
  }

  opens(which: number | PoolId, more: Told<'worker-opened'> = {}): void {
    this.apply({ type: 'worker-opened', ...more, ...this.of(which) })
  }

  fails(which: number | PoolId, why: string, more: Told<'worker-failed'> = {}): void {
    this.apply({ type: 'worker-failed', ...more, ...this.of(which), why })
  }

  says(which: number | PoolId, message: object | string): void {
    this.apply({ type: 'worker-received', ...this.of(which), bytes: lineOf(message) })
  }

  /** Its pipe ends, and then itself. */
  dies(which: number | PoolId, more: Told<'worker-ended'> = {}): void {
    const of = this.of(which)
    this.apply({ type: 'worker-silent', ...of, pipe: 'stdout' })
    this.#end(of, more)
  }

  /** It ends, and then its pipe. */
  ends(which: number | PoolId, more: Told<'worker-ended'> = {}): void {
    const of = this.of(which)
    this.#end(of, more)
    this.apply({ type: 'worker-silent', ...of, pipe: 'stdout' })
  }

  #end(of: WorkerGeneration, more: Told<'worker-ended'>): void {
    this.apply({ type: 'worker-ended', isClean: false, how: { exitCode: 1, signal: null }, ...more, ...of })
  }

  /** Lets the time pass, with every tick that falls due and one at the end. */
  pass(ms: number): void {
    const endMs = this.nowMs + ms
    do {
      this.nowMs = Math.min(endMs, Math.max(this.nowMs + 1, this.bus.nextDeadlineMs() ?? endMs))
      this.apply({ type: 'tick' })
    } while (this.nowMs < endMs)
  }

  /** All that a client was sent. */
  all(client: number): Message[] {
    return this.#messages(`client ${client}`)
  }

  /** All that was sent into a slot, or that of a pool. */
  at(which: number | PoolId): Message[] {
    return this.#messages(`worker ${typeof which === 'number' ? which : this.of(which).worker}`)
  }

  get snapshot(): ReturnType<Bus['snapshot']> {
    return this.bus.snapshot()
  }

  /** What a client was sent first with this id. */
  heard(client: number, id: unknown): Message {
    return this.all(client).find((message) => message.id === id)
  }

  reason(client: number, id: unknown): string | undefined {
    return this.heard(client, id)?.error?.data?.reason
  }

  did<Do extends Action['do']>(what: Do): Did<Do>[] {
    return this.done.filter((action): action is Did<Do> => action.do === what)
  }

  /** An action was performed. */
  protected performed(_action: Action): void {}

  /** A peer was sent a line. */
  protected sent(_to: Write, _line: string): void {}

  /** Whatever waits to be written arrives. */
  protected deliver(): void {
    for (let writes = this.bus.takeWrites(); writes.length > 0; writes = this.bus.takeWrites())
      for (const write of writes) {
        const bytes = Buffer.concat(write.buffers)
        const lines = bytes.toString().split('\n').filter(Boolean)
        const peer = `${write.kind} ${write.id}`
        this.lines.set(peer, [...(this.lines.get(peer) ?? []), ...lines])
        const isStalled = this.stalled.has(write.kind === 'client' ? write.id : `worker ${write.id}`)
        this.#perform(this.bus.wrote(write, isStalled ? bytes.length : 0, this.nowMs))
        for (const line of lines) this.sent(write, line)
      }
  }

  #messages(peer: string): Message[] {
    return (this.lines.get(peer) ?? []).map((line) => JSON.parse(line))
  }

  #perform(actions: readonly Action[]): void {
    this.done.push(...actions)
    for (const action of actions) {
      if (action.do === 'open-worker') {
        this.started.push({ ...action, atMs: this.nowMs })
        if (!this.isSlow) this.opens(action.worker)
      }
      this.performed(action)
    }
  }
}
