/**
 * A client as the bus meets it: a connection with its two directions, and an account of what it has asked and got.
 *
 * It says what `client-speech.ts` puts into its mouth, in pieces of any size, reads as fast as its manners allow, and
 * judges every line it hears with `client-ears.ts`.
 */
import type { Client } from '../../src/kernel/peers.ts'
import type { ClientId, Door } from '../../src/kernel/vocabulary.ts'
import { hear } from './client-ears.ts'
import { speak } from './client-speech.ts'
import { MAX_FIRST_BYTES } from './gatehouse.ts'
import { ClientLine, type Draft, idKey, type WorkerLine } from './line.ts'
import { LineReader, Pipe, Sending } from './pipe.ts'
import type { TongueName } from './scenario.ts'
import type { SimWorker } from './sim-worker.ts'
import { demand } from './violation.ts'
import type { Visit } from './visit.ts'
import type { World } from './world.ts'

/** How a client names the pool it wants. */
export type Addressing = 'door' | 'line' | 'open' | 'none'

/** A question that it was asked and has not answered. */
export interface Asked {
  readonly idRaw: string
  readonly line: WorkerLine
}

const MAX_UNSENT_BYTES = 6_000
/** The shell may be late with a tick. */
const LATE_MS = 200
const LONG_LIVED: ReadonlySet<string> = new Set(['subscriptions/listen', 'bus::open'])

export class SimClient {
  readonly world: World
  readonly id: ClientId
  readonly door: Door
  readonly tongue: TongueName
  readonly pool: string
  readonly addressing: Addressing
  readonly pace: 'eager' | 'slow' | 'stuck'
  readonly maxLineBytes: number
  readonly sending = new Sending()
  readonly pipe: Pipe
  readonly #reader = new LineReader()
  isPaused = false
  /** It wants to end its writing side, or has. */
  isEnding = false
  hasEnded = false
  /** It went away by itself. */
  hasLeft = false
  isLeaveTold = false
  closed: 'flush' | 'drop' | undefined
  isOver = false
  /** The bus listens no more: a fault, or the end of the bus. */
  isDeafened = false
  isRefused = false
  /** Of what it has sent, the bus has not read so much, for it sleeps. */
  unreadBytes = 0
  #omitsNewline = false
  #batch: ClientLine[] | undefined
  /** It was welcomed in a revision that has arrays. */
  hasBatches = false
  /** It has read everything that there was for it. */
  #isCaughtUp = true
  /** Lines from here on may tell it of sessions that it still has. */
  sessionsFrom = 0
  /** Sessions that ended with the right to their pool. */
  readonly endedEarly = new Set<string>()
  /** Sessions that one message has named together. */
  readonly coupled = new Set<string>()

  hasSpoken = false
  isBadlyOpened = false
  /** So many answers it waits for before it goes on. */
  patience = 1
  lastAnswered: string | undefined
  hasInitialised = false
  /** The version of its protocol that it asks for, and the one it was welcomed in. */
  readonly wantedVersion: number
  version: number | undefined
  introduction: ClientLine | undefined
  sessions: string[] = []
  readonly named = new Set<string>()
  readonly claimed = new Set<string>()
  /** Every session that may ever have been its own, since when, and when it was last told that one is lost. */
  readonly everNamed = new Set<string>()
  readonly namedAtMs = new Map<string, number>()
  readonly toldLostMs = new Map<string, number>()
  /** When it left, ended or was closed. */
  goneAtMs = Number.POSITIVE_INFINITY
  readonly subscribed = new Set<string>()
  readonly tasks: string[] = []
  readonly asked = new Map<string, Asked>()
  readonly vagueIds = new Set<string>()
  /** Its unanswered requests by id, and how many answers came that may be for any of them. */
  readonly open = new Map<string, Set<ClientLine>>()
  readonly vague = new Map<string, number>()
  readonly lastHeard = new Map<SimWorker, number>()
  readonly #unconsumed: { readonly endBytes: number; readonly line: ClientLine }[] = []
  consumedRequests = 0
  answers = 0
  cancelledCount = 0
  /** How much of what it says are calls of agents, and how many of the answers were for those. */
  readonly callShare: number
  callAnswers = 0
  /** How it has come to a bus that tells its callers apart. */
  visit: Visit | undefined

  constructor(world: World, id: ClientId, door: Door, pool: string, tongue: TongueName) {
    const { chance } = world
    this.world = world
    this.id = id
    this.door = door
    this.pool = pool
    this.tongue = tongue
    const addressing = chance.pick(['door', 'line', 'line', 'open', 'none'] as const)
    this.addressing = canUse(addressing, world, pool) ? addressing : 'line'
    this.pace = chance.is(world.scenario.malice / 2) ? chance.pick(['slow', 'stuck']) : 'eager'
    this.pipe = new Pipe(chance.pick([16, 100, 400, 5_000, 100_000]))
    this.maxLineBytes = world.maxClientLineBytes
    this.wantedVersion = world.scenario.customs.versions.size === 0 ? 1 : chance.between(1, 2)
    this.callShare = world.scenario.aio === undefined ? 0 : chance.pick([0, 0.3, 0.6, 1])
  }

  toString(): string {
    return `client ${this.id}`
  }

  get isSilent(): boolean {
    return this.isEnding || this.hasLeft || this.closed !== undefined
  }

  /** It has read everything that there was for it. */
  get hasHeardAll(): boolean {
    return this.#isCaughtUp
  }

  /** It is there, and the bus has not closed it. */
  get isListening(): boolean {
    return !this.hasLeft && !this.hasEnded && this.closed === undefined
  }

  /** Who speaks a protocol is introduced first. */
  get mayCall(): boolean {
    if (this.callShare === 0) return false
    if (this.tongue === 'plain' || this.callShare === 1) return true
    return this.hasInitialised && this.answers - this.callAnswers >= this.patience
  }

  // ---- one step of its life ----

  act(): void {
    const { chance } = this.world
    const roll = chance.next()
    if (roll < 0.008 * (1 + this.world.scenario.malice * 4)) return this.#withdraw()
    if (roll < 0.35 && !this.isSilent && this.sending.length < MAX_UNSENT_BYTES) {
      for (let i = chance.between(1, 3); i > 0 && !this.isSilent; i--) speak(this)
      return this.#deliver(0.7)
    }
    if (roll < 0.65) return this.#deliver(1)
    this.#read()
  }

  /** It asks nothing more, reads everything and answers what it is asked. */
  settle(): void {
    for (const asked of [...this.asked.values()]) if (!this.isSilent) this.answer(asked)
    this.#deliver(1, true)
    this.#listen(Number.POSITIVE_INFINITY)
  }

  #withdraw(): void {
    const { chance } = this.world
    if (this.isSilent || chance.is(0.5)) return this.leave()
    // A last line without newline counts (contract 4.2.1).
    this.#omitsNewline = chance.is(0.3)
    if (this.#omitsNewline) speak(this)
    this.isEnding = true
  }

  #read(): void {
    const { chance } = this.world
    if (this.pace === 'stuck' && chance.is(0.95)) return
    this.#listen(this.pace === 'slow' ? chance.between(1, 60) : chance.is(0.8) ? Number.POSITIVE_INFINITY : 100)
  }

  #listen(bytes: number): void {
    if (this.hasLeft) return
    for (const text of this.#reader.push(this.pipe.read(bytes))) {
      this.world.moves++
      this.world.tell(() => `  ${this} hears ${text}`)
      hear(this, text)
    }
    if (this.pipe.isDrainDue) {
      this.pipe.isDrainDue = false
      if (this.closed === undefined) this.world.apply({ type: 'client-wrote', client: this.id, pendingBytes: 0 })
    }
    if (this.closed === 'flush' && this.pipe.isIdle) this.#end()
  }

  #deliver(probability: number, isAll = false): void {
    const { chance, world } = { chance: this.world.chance, world: this.world }
    if (this.hasLeft) return this.#tellLeft()
    if (this.closed !== undefined || !chance.is(probability)) return
    // A read may be under way when the bus asks for none.
    if (this.isPaused && (this.sending.length === 0 || !world.isLateRead())) return
    if (this.sending.length > 0) {
      const bytes = isAll || chance.is(0.6) ? this.sending.length : chance.between(1, this.sending.length)
      return world.apply({ type: 'client-received', client: this.id, bytes: this.sending.take(bytes) })
    }
    if (!this.isEnding || this.hasEnded) return
    this.hasEnded = true
    world.apply({ type: 'client-ended', client: this.id })
  }

  /** The connection is torn down; what was not sent never is. */
  leave(): void {
    if (this.hasLeft || this.closed !== undefined) return
    this.hasLeft = true
    this.pipe.close()
  }

  #tellLeft(): void {
    if (this.isLeaveTold) return
    this.isLeaveTold = true
    this.isOver = true
    this.goneAtMs = this.world.nowMs
    this.world.apply({ type: 'client-closed', client: this.id })
  }

  // ---- what it says ----

  say(draft: Draft): ClientLine {
    const { world } = this
    const line = new ClientLine(world.lines.length, this, draft)
    world.lines.push(line)
    if (this.#batch === undefined) return this.#send(line, line.text)
    this.#batch.push(line)
    if (line.kind === 'request') this.#openRequest(line)
    return line
  }

  /** What is said until `sendBatch` goes into one array. */
  gather(): void {
    this.#batch = []
  }

  /** One array; what would be too long goes one by one. */
  sendBatch(): void {
    const lines = this.#batch ?? []
    this.#batch = undefined
    const text = `[${lines.map((line) => line.text).join(',')}]`
    const isArray = lines.length > 0 && text.length + 4 <= this.maxLineBytes
    if (!isArray) {
      for (const line of lines) this.#sendAfterAll(line)
      return
    }
    const end = this.#omitsNewline ? '' : '\n'
    this.hasSpoken = true
    this.world.tell(() => `${this} writes ${text}`)
    const sentBytes = this.sending.add(`${text}${end}`)
    for (const line of lines) {
      line.sentAtMs = this.world.nowMs
      this.#unconsumed.push({ endBytes: end === '' ? Number.POSITIVE_INFINITY : sentBytes, line })
    }
  }

  #sendAfterAll(line: ClientLine): void {
    const key = line.kind === 'request' ? idKey(line.idRaw!) : ''
    const open = this.open.get(key)
    open?.delete(line)
    if (open?.size === 0) this.open.delete(key)
    this.#send(line, line.text)
  }

  /** Text that is no message, or one that the bus must refuse. */
  blurt(text: string, idRaw?: string): void {
    const line = new ClientLine(this.world.lines.length, this, { kind: 'fault', method: '', members: [], idRaw })
    this.world.lines.push(line)
    this.#send(line, text)
  }

  #send(line: ClientLine, text: string): ClientLine {
    const { chance, nowMs } = this.world
    const end = this.#omitsNewline ? '' : chance.is(0.9) ? '\n' : chance.pick(['\r\n', '\n\n', '\n \r\n'])
    const isFirst = this.visit?.mustProve && this.visit.principal === undefined && !this.hasSpoken
    const maxBytes = isFirst ? MAX_FIRST_BYTES : this.maxLineBytes
    const isTooLong = text.length + Math.max(0, end.indexOf('\n')) > maxBytes
    const sent = isTooLong ? new ClientLine(line.serial, this, { ...line, kind: 'fault' }) : line
    this.world.lines[line.serial] = sent
    this.hasSpoken = true
    sent.sentAtMs = nowMs
    this.world.tell(() => `${this} writes ${text}`)
    // The newline of the message itself, not what follows it.
    const newline = end.indexOf('\n')
    const sentBytes = this.sending.add(`${text}${end}`)
    const endBytes = newline === -1 ? Number.POSITIVE_INFINITY : sentBytes - end.length + newline + 1
    this.#unconsumed.push({ endBytes, line: sent })
    if (sent.kind === 'request') this.#openRequest(sent)
    return sent
  }

  #openRequest(line: ClientLine): void {
    const key = idKey(line.idRaw!)
    const open = this.open.get(key)
    if (open === undefined) this.open.set(key, new Set([line]))
    else open.add(line)
  }

  answer(asked: Asked): void {
    const { chance } = this.world
    this.asked.delete(asked.idRaw)
    this.lastAnswered = asked.idRaw
    const serial = this.world.lines.length
    const line = this.say({
      kind: 'response',
      method: '',
      idRaw: asked.idRaw,
      members: [
        ['jsonrpc', '"2.0"'],
        ['id', ''],
        chance.is(0.8) ? ['result', `{"#":${serial}}`] : ['error', `{"code":1,"message":"no","data":{"#":${serial}}}`],
      ],
    })
    line.answers = asked.line
    line.isVague = this.vagueIds.has(asked.idRaw)
  }

  /** Contract 8.1: what has waited for longer than `request_timeout_sec` has been answered, wherever it waited. */
  demandTimely(): void {
    const timeoutMs = this.world.timeoutMsOf(this.pool)
    if (timeoutMs === 0 || !this.isListening || !this.pipe.isIdle || this.#reader.isInside) return
    const latestMs = this.world.nowMs - timeoutMs - LATE_MS
    for (const [key, lines] of this.open) {
      if (this.vague.has(key)) continue
      for (const line of lines) {
        if (this.visit !== undefined && line.taken?.principal === undefined) continue
        if (line.arrivedAtMs > latestMs || line.isCancelled || line.isCall || LONG_LIVED.has(line.method)) continue
        demand(false, 'answered once', `${this} has waited for ${this.world.nowMs - line.arrivedAtMs} ms: ${line.text}`)
      }
    }
  }

  /** The session may be its own. */
  noteName(name: string): void {
    const { namers, nowMs } = this.world
    if (this.everNamed.has(name)) return
    this.everNamed.add(name)
    this.namedAtMs.set(name, nowMs)
    const users = namers.get(name)
    if (users === undefined) namers.set(name, new Set([this]))
    else users.add(this)
  }

  /** Its sessions have ended, for it may use their pool no more. */
  forgetSessions(): void {
    for (const key of this.world.homes.keys()) if (key.startsWith(`${this.id} `)) this.world.homes.delete(key)
    this.sessions = []
    this.sessionsFrom = this.world.lines.length
  }

  /** A session is its own from the announcement on, unless what it had ended while that was under way. */
  learnSession(name: string, announcement: { readonly serial: number }): void {
    if (announcement.serial >= this.sessionsFrom) this.sessions.push(name)
  }

  // ---- what it is owed ----

  /** An answer to this very request. */
  settleRequest(line: ClientLine): void {
    const key = idKey(line.idRaw!)
    const open = this.open.get(key)
    demand(open?.delete(line) === true, 'answered once', () => `${this} got a second answer to ${line.text}`)
    this.#count(key, open, line.isCancelled ? 1 : 0)
    line.isAnswered = true
  }

  /** An answer that says only which id it is for; returns the request if there is but one. */
  settleId(key: string, what: string): ClientLine | undefined {
    const open = this.open.get(key)
    this.vague.set(key, (this.vague.get(key) ?? 0) + 1)
    demand(open !== undefined && open.size > 0, 'answered once', () => `${this} is owed nothing for ${what}`)
    this.#count(key, open, 0)
    if (open.size > 1) return undefined
    const [line] = open
    if (line !== undefined) line.isAnswered = true
    return line
  }

  #count(key: string, open: Set<ClientLine>, cancelled: number): void {
    const vague = this.vague.get(key) ?? 0
    demand(open.size >= vague, 'answered once', () => `${this} got one answer too many for the id ${key}`)
    this.answers++
    this.cancelledCount -= cancelled
    if (open.size !== vague) return
    for (const line of open) if (line.isCancelled) this.cancelledCount--
    this.open.delete(key)
    this.vague.delete(key)
  }

  /** What it has sent and nobody has seen the bus take. */
  get unconsumed(): readonly ClientLine[] {
    return this.#unconsumed.map(({ line }) => line)
  }

  get owed(): number {
    return this.consumedRequests - this.answers
  }

  /** Follows how much of what it sent the bus has looked at. */
  follow(peer: Client): void {
    // A last line without newline is taken at the end, however long it is held up then.
    const isAllTaken = peer.hasEnded && peer.backlog.length === 0 && peer.splitter.retainedBytes === 0
    const bytes = isAllTaken
      ? Number.POSITIVE_INFINITY
      : this.sending.sentBytes - this.unreadBytes - peer.backlogBytes + peer.backlogFrom
    this.#consume(bytes)
    if (peer.isDeaf) this.isDeafened = true
    const isAllSent = peer.outbox.isEmpty && peer.batches === undefined
    this.#isCaughtUp = isAllSent && this.pipe.isIdle && !this.#reader.isInside
    if (!this.#isCaughtUp || this.closed !== undefined || this.hasLeft) return
    const { owed } = this
    demand(
      peer.pendingCount <= owed && peer.pendingCount >= owed - this.cancelledCount,
      'answered once',
      () => `${this} is owed ${owed} answers (${[...this.open.keys()]}), and the bus knows of ${peer.pendingCount}`,
    )
  }

  #consume(bytes: number): void {
    while (this.#unconsumed.length > 0 && this.#unconsumed[0]!.endBytes <= bytes && !this.isDeafened) {
      const { line } = this.#unconsumed.shift()!
      line.isConsumed = true
      line.arrivedAtMs = this.world.nowMs
      line.owedBefore = this.owed
      if (line.kind === 'request') this.consumedRequests++
      if (this.visit !== undefined) this.world.gatehouse!.noteTaken(this, line)
      if (line.kind === 'fault') this.isDeafened = true
    }
  }

  // ---- the end ----

  closeBy(how: 'flush' | 'drop'): void {
    demand(this.closed === undefined, 'actions sensible', () => `${this} was closed twice`)
    this.closed = how
    this.goneAtMs = Math.min(this.goneAtMs, this.world.nowMs)
    const isUnfounded = how === 'drop' && this.world.isStopping && this.world.isRoomy && this.#isCaughtUp
    if (isUnfounded && !this.hasEnded && !this.isRefused) this.#demandAll()
    if (how === 'flush' && !this.hasLeft) return
    this.isOver = true
    this.pipe.close()
  }

  #demandAll(): void {
    demand(
      this.owed <= this.cancelledCount,
      'answered once',
      () => `${this} was closed and is owed ${this.owed} answers`,
    )
  }

  #end(): void {
    if (this.isOver) return
    this.isOver = true
    demand(!this.#reader.isInside, 'bytes unchanged', () => `${this} was closed in the middle of a line`)
    // For a client that speaks a stateful protocol the end of its input is its end (contract 4.1.2).
    if (this.hasEnded && (this.tongue !== 'plain' || this.world.scenario.isMixed)) return
    if (this.hasEnded && !this.world.isStopping) this.#consume(Number.POSITIVE_INFINITY)
    demand(
      this.owed <= this.cancelledCount,
      'answered once',
      () => `${this} was closed and is owed ${this.owed} answers`,
    )
  }
}

/** Who names no pool gets this one, or is refused; a pool that was chosen at the opening must not have gone meanwhile. */
function canUse(addressing: Addressing, { spec, scenario }: World, pool: string): boolean {
  if (addressing === 'open') return !scenario.reloads
  if (addressing !== 'none') return true
  // Which pool is meant then depends on what the caller may use.
  if (scenario.access !== undefined && (spec.pools.length > 1 || scenario.reloads)) return false
  return spec.defaultPool === undefined ? !scenario.reloads : spec.defaultPool === pool
}
