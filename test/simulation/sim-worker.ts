/**
 * A worker process as the bus meets it: it is spawned or fails to, reads, answers, talks, and dies in its own way.
 *
 * What it says is in `worker-speech.ts`; every line it hears is judged by `worker-ears.ts`. What it has written is in the
 * pipe until the bus reads it, also after its death.
 */
import type { PoolSpec, WorkerId } from '../../src/kernel/vocabulary.ts'
import { type CallRecord, ClientLine, type Draft, idKey, serialsIn, WorkerLine } from './line.ts'
import { LineReader, Pipe, Sending } from './pipe.ts'
import type { TongueName } from './scenario.ts'
import type { SimClient } from './sim-client.ts'
import { hearAsWorker } from './worker-ears.ts'
import { finishWork, work } from './worker-speech.ts'
import type { World } from './world.ts'

export type Temper = 'fast' | 'slow' | 'silent' | 'mute' | 'forgetful' | 'deaf' | 'chatty' | 'lying' | 'dying' | 'junk'

/** A request that it has read and not answered; without a line it is one of the bus's own. */
export interface Received {
  readonly idRaw: string
  readonly method: string
  readonly line: ClientLine | undefined
  /** The session that its answer will announce. */
  readonly announces?: string
  /** It may be a client's own all the same. */
  readonly isAwaited?: boolean
  /** The version that a handshake asks for. */
  readonly version?: number
  /** The call that was laid before it, and what came with it. */
  readonly call?: CallRecord
  readonly meta?: Readonly<Record<string, string>>
  readonly tokenRaw?: string
}

/** What is known of a line beyond its text. */
export type Remarks = Partial<
  Pick<
    WorkerLine,
    | 'tools'
    | 'to'
    | 'answers'
    | 'during'
    | 'refersTo'
    | 'session'
    | 'announces'
    | 'about'
    | 'isEarly'
    | 'isVague'
    | 'isCall'
    | 'callOf'
    | 'isPart'
  >
>

const TEMPERS: readonly (readonly [number, Temper])[] = [
  [3, 'slow'],
  [1, 'silent'],
  [1, 'deaf'],
  [3, 'chatty'],
  [2, 'lying'],
  [2, 'dying'],
  [1, 'junk'],
]
const RETICENT = ['mute', 'mute', 'forgetful', 'silent'] as const
const LONG_LIVED: ReadonlySet<string> = new Set(['subscriptions/listen'])
const HANDSHAKES: ReadonlySet<string> = new Set(['initialize', 'server/discover'])
const MAX_UNREAD_BYTES = 8_000

export class SimWorker {
  readonly world: World
  readonly slot: WorkerId
  readonly generation: number
  readonly spec: PoolSpec
  readonly tongue: TongueName
  readonly temper: Temper
  readonly stdin: Pipe
  readonly stdout = new Sending()
  readonly #reader = new LineReader()
  state: 'launching' | 'running' | 'dead' | 'absent' = 'launching'
  isPaused = false
  isStdoutOver = false
  isExitTold = false
  isBuried = false
  /** When it starts, or ends because it was told to. */
  dueMs: number
  isStopping = false
  /** When its process ran, when it ended or was told to, and when the bus gave it up as stalled. */
  startedAtMs = Number.POSITIVE_INFINITY
  endedAtMs = Number.POSITIVE_INFINITY
  stalledAtMs = Number.POSITIVE_INFINITY
  /** When the bus had done with it. */
  buriedAtMs = Number.POSITIVE_INFINITY
  /** When it last read or wrote as far as the bus can tell, or was read from again. */
  movedAtMs = 0
  pausedAtMs = 0
  exit: { code: number | null; signal: string | null } = { code: 0, signal: null }

  readonly open = new Map<string, Received>()
  readonly usedIds = new Set<string>()
  /** Ids it will never answer, and ids it has lied with. */
  readonly unansweredIds = new Set<string>()
  readonly #forgotten = new Set<Received>()
  readonly vagueIds = new Set<string>()
  readonly questions = new Map<string, WorkerLine>()
  readonly owners = new Map<string, SimClient>()
  readonly users = new Map<string, Set<SimClient>>()
  readonly lastHeard = new Map<string, number>()
  readonly repeated = new Set<ClientLine>()
  readonly subscribed = new Set<string>()
  sole: SimClient | undefined
  /** The version it has welcomed somebody in (ACP). */
  version: number | undefined
  /** Sessions in which a turn was begun, and those that the bus has cancelled or closed. */
  readonly prompted = new Set<string>()
  readonly cancelledByBus = new Set<string>()
  readonly closedByBus = new Set<string>()
  soleCall: CallRecord | undefined
  #nextSession = 1

  constructor(world: World, slot: WorkerId, generation: number, spec: PoolSpec) {
    const { chance, scenario } = world
    this.world = world
    this.slot = slot
    this.generation = generation
    this.spec = spec
    this.tongue = scenario.tongues.get(spec.id)!
    const temper = chance.is(scenario.malice) ? chance.weigh(TEMPERS) : 'fast'
    const isReticent = scenario.customs.withholds && temper === 'fast' && chance.is(0.4)
    this.temper = isReticent ? chance.pick(RETICENT) : temper
    this.stdin = new Pipe(chance.pick([16, 100, 1_000, 60_000]))
    this.dueMs = world.nowMs + chance.pick([0, 5, 200])
  }

  get pool(): string {
    return this.spec.id
  }

  /** What it was handed and has not read, the beginning of a line too. */
  get unread(): string {
    return this.#reader.part + this.stdin.rest
  }

  get isAlive(): boolean {
    return this.state === 'running'
  }

  toString(): string {
    return `worker ${this.slot}.${this.generation}`
  }

  ownerOf(session: string): SimClient | undefined {
    return this.owners.get(session)
  }

  /** Several clients have used this name here, and this is one of them. */
  isCommon(session: string, client: SimClient): boolean {
    return this.users.get(session)?.has(client) === true || (session.startsWith('common') && client.named.has(session))
  }

  // ---- one step of its life ----

  act(): void {
    const { chance, nowMs } = this.world
    if (this.state === 'launching') return nowMs >= this.dueMs ? this.#launch() : undefined
    if (this.state !== 'running') return this.#decay()
    if (this.isStopping && nowMs >= this.dueMs) return this.die({ code: 0, signal: null })
    const roll = chance.next()
    if (roll < (this.temper === 'dying' ? 0.02 : 0.0008)) return this.#collapse()
    if (roll < 0.35)
      return this.#read(this.#isHeldUp || (this.temper === 'deaf' && chance.is(0.97)) ? 0 : Number.POSITIVE_INFINITY)
    if (roll < 0.7 && this.stdout.length < MAX_UNREAD_BYTES) work(this)
    this.#deliver(false)
  }

  /** Some do one thing after the other: while nobody takes what they write, they do not read. */
  get #isHeldUp(): boolean {
    return this.slot % 2 === 1 && this.isPaused && this.stdout.length > 0
  }

  /** It answers everything and starts nothing; one that would never answer dies. */
  settle(): void {
    if (this.state === 'launching') this.#launch()
    else if (this.state !== 'running') this.#decay()
    else {
      this.#read(Number.POSITIVE_INFINITY)
      if (this.#isDeadlock()) this.die({ code: null, signal: 'SIGKILL' })
      else if (this.isStopping && this.world.nowMs >= this.dueMs) this.die({ code: 0, signal: null })
      else {
        finishWork(this)
        this.#deliver(true)
      }
    }
  }

  /** It will never answer this. */
  withholds(received: Received): boolean {
    if (this.temper === 'silent' || this.#forgotten.has(received)) return true
    if (this.temper === 'mute') return HANDSHAKES.has(received.method)
    if (this.temper !== 'forgetful' || this.world.chance.is(0.7)) return false
    this.#forgotten.add(received)
    return true
  }

  /** Somebody waits for what it withholds, and no limit ends that: only its death does. */
  #isDeadlock(): boolean {
    const { hangTimeoutMs, limits } = this.spec
    for (const received of this.open.values()) {
      if (received.line === undefined && received.call === undefined && !received.isAwaited) continue
      const isEnded = hangTimeoutMs > 0 || (limits.requestTimeoutMs > 0 && !LONG_LIVED.has(received.method))
      if (!isEnded && this.withholds(received)) return true
    }
    return false
  }

  #launch(): void {
    const { world } = this
    const { chance, scenario } = world
    const of = { worker: this.slot, generation: this.generation }
    if (chance.is(scenario.malice * 0.1)) {
      this.state = 'absent'
      this.#noteEnd()
      this.isStdoutOver = true
      const again = (['never', 'later'] as const)[chance.int(20)]
      return world.apply({ type: 'worker-failed', ...of, why: 'no such file', ...(again && { again }) })
    }
    this.state = 'running'
    this.startedAtMs = world.nowMs
    world.apply({ type: 'worker-opened', ...of })
  }

  #read(bytes: number): void {
    for (const text of this.#reader.push(this.stdin.read(bytes))) {
      this.world.moves++
      this.world.tell(() => `  ${this} reads ${text}`)
      hearAsWorker(this, text)
    }
    if (!this.stdin.isDrainDue) return
    this.stdin.isDrainDue = false
    this.movedAtMs = this.world.nowMs
    this.world.apply({ type: 'worker-wrote', worker: this.slot, generation: this.generation, pendingBytes: 0 })
  }

  #deliver(isAll: boolean): void {
    const { chance } = this.world
    if (this.stdout.length === 0 || (this.isPaused && !this.world.isLateRead())) return
    const bytes = isAll || chance.is(0.6) ? this.stdout.length : chance.between(1, this.stdout.length)
    const of = { worker: this.slot, generation: this.generation }
    this.movedAtMs = this.world.nowMs
    this.world.apply({ type: 'worker-received', ...of, bytes: this.stdout.take(bytes) })
  }

  // ---- its end ----

  #collapse(): void {
    const { chance } = this.world
    if (chance.is(0.5)) this.stdout.cutAfter(chance.int(this.stdout.length + 1))
    this.die(chance.is(0.3) ? { code: 0, signal: null } : { code: null, signal: 'SIGSEGV' })
  }

  die(exit: SimWorker['exit']): void {
    this.world.tell(() => `${this} dies`)
    this.world.moves++
    this.state = 'dead'
    this.exit = exit
    this.#noteEnd()
    this.#lose(this.unread)
    this.stdin.close()
  }

  /** What a dead process leaves comes in any order: last words, the end of stdout, the exit, a broken stdin. */
  #decay(): void {
    const { world } = this
    const { chance } = world
    if (this.state !== 'dead') return
    const of = { worker: this.slot, generation: this.generation }
    const isLast = this.isStdoutOver || this.isPaused
    if (!this.isExitTold && (isLast || chance.is(0.4))) {
      this.isExitTold = true
      return world.apply({
        type: 'worker-ended',
        ...of,
        isClean: this.exit!.code === 0,
        how: { exitCode: this.exit!.code, signal: this.exit!.signal },
      })
    }
    if (this.stdout.length > 0 && !this.isPaused) return this.#deliver(false)
    if (!this.isStdoutOver && !this.isPaused && this.stdout.length === 0) {
      this.isStdoutOver = true
      return world.apply({ type: 'worker-silent', ...of, pipe: 'stdout' })
    }
    if (chance.is(0.1)) world.apply({ type: 'worker-silent', ...of, pipe: 'stdin' })
  }

  get isOver(): boolean {
    return this.state === 'absent' || (this.state === 'dead' && this.isExitTold && (this.isStdoutOver || this.isBuried))
  }

  /** The bus wants it to go: at once, after SIGTERM, or only when it is killed. */
  stop(how: 'end' | 'kill' | 'clear'): void {
    const { chance, nowMs } = this.world
    this.#noteEnd()
    if (how === 'clear') {
      this.isBuried = true
      this.buriedAtMs = nowMs
      if (this.state === 'launching') this.state = 'absent'
      if (this.state === 'running') this.die({ code: null, signal: 'SIGKILL' })
      return
    }
    if (this.isStopping || this.state !== 'running') {
      // Asked to go before it was there: it goes as soon as it is.
      this.isStopping = true
      return
    }
    this.isStopping = true
    this.dueMs = nowMs + chance.pick([0, 20, 2_500, 5_000])
  }

  /** What is handed to it. */
  write(buffers: readonly Buffer[]): number {
    if (this.stdin.isClosed) this.#lose(Buffer.concat(buffers).latin1Slice())
    return this.stdin.write(buffers)
  }

  /** It dies with what it has not read. */
  #lose(text: string): void {
    for (const serial of serialsIn(text)) {
      const line = this.world.lines[serial]
      if (line instanceof ClientLine) line.lostWith ??= this
    }
  }

  #noteEnd(): void {
    this.endedAtMs = Math.min(this.endedAtMs, this.world.nowMs)
  }

  // ---- what it knows ----

  noteUser(session: string, client: SimClient): void {
    const users = this.users.get(session)
    if (users === undefined) this.users.set(session, new Set([client]))
    else users.add(client)
  }

  /** It has said itself whose the session is, or that it is over. */
  noteOwner(session: string, client: SimClient | undefined): void {
    if (client === undefined) return void this.owners.delete(session)
    client.noteName(session)
    this.noteUser(session, client)
    this.owners.set(session, client)
  }

  makeSession(): string {
    const { chance } = this.world
    const isReused = this.temper === 'lying' && this.owners.size > 0 && chance.is(0.3)
    return isReused ? chance.pick([...this.owners.keys()]) : `w${this.slot}.${this.generation}-${this.#nextSession++}`
  }

  /** Nobody waits for the answer any more: agents still give one, servers may never (MCP). */
  cancelled(received: Received): void {
    if (this.tongue === 'acp' || received.method === 'initialize' || this.world.chance.is(0.5)) return
    const key = idKey(received.idRaw)
    this.open.delete(key)
    this.unansweredIds.add(key)
  }

  // ---- what it says ----

  say(draft: Draft, of: Remarks): WorkerLine {
    const { world } = this
    const line = Object.assign(new WorkerLine(world.lines.length, this, draft), of)
    world.lines.push(line)
    world.tell(() => `${this} writes ${line.text}`)
    this.stdout.add(`${line.text}\n`)
    return line
  }

  blurt(text: string): void {
    this.world.tell(() => `${this} writes ${text.slice(0, 200)}`)
    this.stdout.add(`${text}\n`)
  }
}
