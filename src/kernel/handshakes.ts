/**
 * Handshakes and what they prove: what a worker speaks, in which version, and who has been welcomed (contract 6.6, 6.7).
 *
 * Where a worker takes one handshake only, its first welcome answers everybody who comes later; errors are not kept. What a
 * pool speaks is learnt here, from the answers of its workers alone. Invariant: whoever is held until the worker has
 * answered goes on or is told, also when the worker stays silent or ends.
 */

import { commonPart } from '../wire/common-part.ts'
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { readWritable } from '../wire/nesting.ts'
import { offersClose } from './announcements.ts'
import { versionOf } from './assignment.ts'
import { hasBatches } from './dialect-table.ts'
import type { Dialect } from './dialects.ts'
import type { Bond, Introduction } from './introductions.ts'
import { FIXED } from './limits.ts'
import type { Client, Welcome, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Route } from './route.ts'
import type { Switchboard } from './switchboard.ts'
import { WaitingLine } from './waiting.ts'

export class Handshakes {
  readonly #board: Switchboard
  readonly #probed = new Set<Worker>()

  constructor(board: Switchboard) {
    this.#board = board
  }

  // ---- the bus's own handshake ----

  /** Whether the workers of this pool are greeted before they take messages. */
  greetsAtStart(pool: Pool): boolean {
    const { greeted } = this.#board.dialects
    const { protocol, sharing } = pool.spec
    if (greeted === undefined || sharing === 'isolated') return false
    const isGreeted = pool.dialect === undefined ? protocol === greeted.table.protocol : pool.dialect === greeted
    // A worker that is leased is offered what its clients can do, once there is one.
    return isGreeted && (sharing !== 'lease' || this.#introductionsTo(pool).length > 0)
  }

  /** A worker of such a pool runs: it is ready when it has answered. */
  greet(worker: Worker): void {
    if (worker.pool.probesFirst) this.#probe(worker, () => this.#begin(worker))
    else this.#begin(worker)
  }

  /** The worker has not been greeted, and this message must not come before that. */
  mustGreet({ dialect, row }: Route, { greeting, pool }: Worker): boolean {
    if (pool.spec.sharing !== 'lease' || greeting === 'done' || row?.opens !== undefined) return false
    return dialect === this.#board.dialects.greeted
  }

  /** The message waits until the worker has said what it speaks; it is asked, in the dialect that the message shows. */
  hold(route: Route, worker: Worker): void {
    if (!this.#board.waiting.enter(route, worker.lobby)) return
    if (worker.greeting !== 'none') return
    // Who asks for the dialect can go on with either, and more clients know the older one.
    const isService = route.dialect?.table.probe !== undefined && !route.row?.asksForDialect
    if (isService && this.#mayProbe(worker.pool)) this.#probe(worker, () => this.#begin(worker))
    else this.#begin(worker)
  }

  /** Asks for the dialect; `otherwise` when the worker does not know the question, or says nothing. */
  #probe(worker: Worker, otherwise: () => void): void {
    const { probed } = this.#board.dialects
    const { method, params, proof, codes } = probed!.table.probe!
    const isCurrent = this.#watch(worker)
    this.#probed.add(worker)
    let isSettled = false
    const settle = (isProved: boolean): void => {
      if (isSettled || !isCurrent()) return
      isSettled = true
      this.#probed.delete(worker)
      if (isProved) this.#prove(worker)
      else otherwise()
    }
    this.#board.await(worker, { method, params }, (line, isResult) =>
      settle(isResult ? hasInResult(line, proof) : codes.includes(line.key(FIELD.errorCode) as number)),
    )
    this.#afterSilence(() => settle(false))
  }

  /** The worker has been asked something; tells whether it is still the same one, and still asked. */
  #watch(worker: Worker): () => boolean {
    const { generation } = worker
    worker.greeting = 'asked'
    return () => worker.generation === generation && worker.greeting === 'asked'
  }

  #afterSilence(then: () => void): void {
    const { core } = this.#board
    core.timers.set(core.nowMs + FIXED.silenceMs, then)
  }

  #begin(worker: Worker): void {
    const dialect = this.#board.dialects.greeted!
    const { method, params, offers } = dialect.table.greeting!
    const isCurrent = this.#watch(worker)
    worker.dialect = dialect
    const told = { ...params, [offers]: this.#offersTo(worker.pool) }
    this.#board.await(worker, { method, params: told }, (line, isResult) => {
      if (!isCurrent()) return
      const other = isResult ? this.#spokenInstead(worker, line) : undefined
      if (other !== undefined) this.#mistaken(worker, other, line)
      else if (isResult) this.#succeed(worker, dialect, line)
      else this.#fail(worker, line)
    })
    // Slow is not another dialect: only an answer to the question decides.
    this.#afterSilence(() => {
      if (isCurrent() && this.#mayProbe(worker.pool)) this.#probe(worker, () => {})
    })
  }

  /** What the bus answers itself; a worker that is leased can put questions to its holder: what all clients of the pool can answer. */
  #offersTo(pool: Pool): Record<string, unknown> {
    const { sharing, offers: own } = pool.spec
    if (sharing !== 'lease') return { ...own }
    const all = this.#introductionsTo(pool).flatMap(({ offers }) => (offers === undefined ? [] : [offers]))
    return all.length === 0 ? { ...own } : { ...all.reduce((a, b) => commonPart(a, b) as typeof a), ...own }
  }

  #introductionsTo(pool: Pool): Introduction[] {
    return [...this.#board.core.everyClient()].flatMap(({ introductions }) => introductions.get(pool.spec.id) ?? [])
  }

  #succeed(worker: Worker, dialect: Dialect, line: Envelope): void {
    worker.greeting = 'done'
    this.#learn(worker, dialect, welcomeIn(line))
    worker.hasBatches = hasBatches(dialect.table, worker.welcome!.revision)
    this.#board.tell(worker, { jsonrpc: '2.0', method: dialect.table.greeting!.confirms })
    this.#board.supervisor.step(worker, 'started')
    this.#release(worker)
  }

  /** Many agents answer any handshake with their own: a word that is answered with a number proves no dialect of words. */
  #spokenInstead({ pool }: Worker, line: Envelope): Dialect | undefined {
    const { greeted, numbered } = this.#board.dialects
    if (pool.dialect !== undefined || pool.spec.protocol === greeted!.table.protocol) return undefined
    return line.typeOf(FIELD.resultProtocolVersion) === 'number' ? numbered : undefined
  }

  /** Its answer is a welcome of another dialect: whoever had it greeted has come to the wrong pool. */
  #mistaken(worker: Worker, spoken: Dialect, line: Envelope): void {
    worker.greeting = 'none'
    this.answered(worker, spoken, undefined, line)
  }

  /** The worker refused: whoever sent a handshake is told what it said; the others want to know what it speaks instead. */
  #fail(worker: Worker, line: Envelope): void {
    const { waiting } = this.#board
    const error = line.bytes.utf8Slice(line.startOf(FIELD.error), line.endOf(FIELD.error))
    for (const route of waiting.take(worker.lobby, ({ row }) => row?.opens !== undefined))
      this.#board.answerRequest(route.request!, `"error":${error}`)
    waiting.reopen(worker.lobby)
    // It is of no use as it is: asking costs nothing, however often others ended over the question.
    if (this.#isOpen(worker.pool)) this.#probe(worker, () => this.#giveUp(worker))
    else this.#giveUp(worker)
  }

  /** It speaks neither. */
  #giveUp(worker: Worker): void {
    worker.greeting = 'none'
    if (!worker.isProven) worker.dialect = undefined
    for (const route of this.#board.waiting.take(worker.lobby)) this.turnAway(route, undefined)
    this.#board.waiting.reopen(worker.lobby)
    if (worker.state !== 'starting') return
    this.#board.supervisor.endBroken(worker, 'worker_exited', { why: 'it refused the handshake' })
  }

  #isOpen({ spec, dialect }: Pool): boolean {
    return spec.era === 'auto' && dialect === undefined && this.#board.dialects.probed !== undefined
  }

  #mayProbe(pool: Pool): boolean {
    return this.#isOpen(pool) && pool.fatalProbes < FIXED.maxFatalProbes
  }

  #prove(worker: Worker): void {
    worker.greeting = 'none'
    this.#learn(worker, this.#board.dialects.probed!, undefined)
    this.#board.supervisor.step(worker, 'started')
    this.#release(worker)
  }

  /** The worker has shown what it speaks, and so what its pool speaks. */
  #learn(worker: Worker, dialect: Dialect, welcome: Welcome | undefined): void {
    worker.dialect = dialect
    worker.isProven = true
    if (worker.welcome?.version === undefined) worker.welcome = welcome ?? worker.welcome
    if (worker.pool.spec.sharing !== 'isolated') worker.pool.dialect ??= dialect
  }

  /** Those who were held go on from where they stopped. */
  #release(worker: Worker): void {
    const { waiting, router } = this.#board
    for (const route of waiting.take(worker.lobby)) router.proceed(route)
    waiting.reopen(worker.lobby)
    // Whoever held it for a message that has gone elsewhere holds it no more.
    this.#board.assignment.maybeRelease(worker)
  }

  /** The worker does not speak what the message shows. */
  turnAway(route: Route, spoken: Dialect | undefined): void {
    const reason = mismatchOf(route, spoken)
    const detail = reason === 'unknown_method' ? { method: route.line.text(FIELD.method) } : undefined
    this.#board.refuse(route, reason, detail)
  }

  /** A worker that ended in the middle of its greeting may speak another dialect; whoever is held there is told. */
  workerEnded(worker: Worker): void {
    const { pool } = worker
    const wasProbed = this.#probed.delete(worker)
    if (wasProbed && worker.greeting === 'asked') pool.fatalProbes++
    if (worker.greeting === 'asked') pool.probesFirst = !wasProbed && this.#mayProbe(pool)
    // Its silence means nothing any more.
    worker.greeting = 'none'
    for (const line of this.#linesAt(worker)) this.#dismiss(worker, line)
  }

  #dismiss(worker: Worker, line: WaitingLine): void {
    const { core, waiting } = this.#board
    const { reason, detail } = worker.ending ?? { reason: 'worker_exited' as const, detail: {} }
    const cause = core.phase === 'running' ? reason : 'shutting_down'
    waiting.dismiss(line, cause, () => ({ pool: worker.pool.spec.id, ...detail }))
  }

  *#linesAt(worker: Worker): Generator<WaitingLine> {
    yield worker.lobby
    for (const bond of worker.bonds) {
      const { held } = bond
      bond.held = undefined
      if (held !== undefined) yield held
    }
  }

  /** The bus ends: nobody is welcomed any more. */
  dismiss(): void {
    for (const worker of this.#board.core.workers.values())
      for (const line of this.#linesAt(worker)) this.#dismiss(worker, line)
  }

  // ---- the clients' own handshakes ----

  /** The handshake of a client at a worker that the bus greets: answered now, or when the worker has spoken. */
  welcome(route: Route, worker: Worker): void {
    const { introductions } = route.client
    const introduction = introductions.get(route.pool.spec.id)!
    introduction.offers = offersIn(route)
    if (worker.greeting !== 'done') return this.hold(route, worker)
    const { table } = worker.dialect!
    const { result, revision: spoken } = worker.welcome!
    const agreed = agreeOn(route.line.text(FIELD.protocolVersion) ?? '', spoken, table.revisions ?? [])
    route.client.hasBatches = hasBatches(table, agreed)
    introduction.isWelcomed = true
    const text = agreed === spoken ? result.toString() : withRevision(result, agreed)
    this.#board.answerRequest(route.request!, `"result":${text}`)
  }

  /** A handshake is under way there, and this message must know how it ends. */
  mustWait(route: Route, { askedVersion, welcome }: Worker): boolean {
    if (askedVersion === undefined || welcome?.version !== undefined) return false
    const version = versionOf(route)
    if (version === undefined) return false
    const from = route.dialect!.table.singleHandshakeFrom ?? Number.POSITIVE_INFINITY
    return askedVersion !== version || askedVersion >= from
  }

  holdForAnswer(route: Route, worker: Worker): void {
    const { core, waiting } = this.#board
    const { startTimeoutMs, id } = worker.pool.spec
    const detail = { pool: id, why: 'its worker has not answered a handshake' }
    const giveUp = (late: Route): void => this.#board.refuse(late, 'no_worker', detail)
    waiting.enter(
      route,
      worker.lobby,
      startTimeoutMs === 0 ? undefined : { untilMs: core.nowMs + startTimeoutMs, giveUp },
    )
  }

  /** The worker takes one handshake only and has had it: later ones get its answer. */
  answerAgain({ client, request }: Route, worker: Worker): void {
    this.#board.answerRequest(request!, `"result":${this.#board.kept.claims.welcome(worker, worker.welcome!.result)}`)
    this.#welcomed(client, worker)
  }

  /** It refuses another handshake: `line` says what it said to the first. */
  welcomeAgain(client: Client, worker: Worker, line: Buffer): void {
    this.#board.flow.sendLine(client, line)
    this.#welcomed(client, worker)
  }

  #welcomed(client: Client, worker: Worker): void {
    client.introductions.get(worker.pool.spec.id)?.welcome(worker.welcome!.version)
    this.tellRemembered(client, worker)
  }

  /** What the worker has said once is told to those who come later. */
  tellRemembered(client: Client, worker: Worker): void {
    for (const line of worker.remembered.values()) this.#board.flow.sendLine(client, line)
  }

  /** The handshake that asked for `version` has been answered. */
  answered(worker: Worker, dialect: Dialect, version: number | undefined, line: Envelope): void {
    worker.askedVersion = undefined
    if (!line.has(FIELD.result) || isOfAnother(worker, dialect, version, line)) {
      if (!worker.isProven) worker.dialect = worker.pool.dialect
      return this.#release(worker)
    }
    const welcome = welcomeIn(line, version)
    this.#learn(worker, dialect, welcome)
    worker.canClose = offersClose(dialect, line)
    const isOlder = version !== undefined && welcome.version !== undefined && welcome.version < version
    if (isOlder && worker.pool.spec.sharing !== 'isolated')
      worker.pool.newestVersion = Math.min(worker.pool.newestVersion, welcome.version)
    this.#release(worker)
  }

  /**
   * Contract 6.6: the one message that is ever sent twice, and nobody gets its answer. What the client says next waits for
   * it, since agents refuse what comes before they are initialised.
   */
  repeat(bond: Bond, then: () => void): void {
    const { worker, generation, introduction } = bond
    const { dialect, version } = introduction
    const message = readWritable(introduction.initialize!) as { method: string; params: unknown }
    const held = new WaitingLine(worker.pool.spec.limits.maxOutputQueueBytes)
    bond.held = held
    worker.askedVersion ??= version
    this.#board.await(worker, message, (line) => {
      this.answered(worker, dialect, version, line)
      if (bond.generation !== generation || bond.held !== held) return
      bond.held = undefined
      bond.isMismatched = isOtherVersion(introduction, line)
      const confirms = dialect.table.greeting?.confirms
      if (confirms !== undefined) this.#board.tell(worker, { jsonrpc: '2.0', method: confirms })
      then()
      for (const route of this.#board.waiting.take(held)) this.#board.router.proceed(route)
      this.#board.waiting.reopen(held)
    })
  }
}

function hasInResult(line: Envelope, member: string): boolean {
  const result: unknown = JSON.parse(line.bytes.utf8Slice(line.startOf(FIELD.result), line.endOf(FIELD.result)))
  return typeof result === 'object' && result !== null && member in result
}

/** Its client was welcomed in another version than the line says. */
function isOtherVersion({ isWelcomed, version }: Introduction, line: Envelope): boolean {
  const said = line.key(FIELD.resultProtocolVersion)
  return isWelcomed && version !== undefined && typeof said === 'number' && said !== version
}

/** Many servers answer any handshake with their own: a number that is answered with a word proves no dialect of numbers. */
function isOfAnother({ pool }: Worker, dialect: Dialect, asked: number | undefined, line: Envelope): boolean {
  if (asked === undefined || pool.spec.protocol === dialect.table.protocol) return false
  return line.typeOf(FIELD.resultProtocolVersion) === 'string'
}

/** A welcome that names no version is one of the version that was asked for. */
function welcomeIn(line: Envelope, asked?: number): Welcome {
  const result = Buffer.from(line.bytes.subarray(line.startOf(FIELD.result), line.endOf(FIELD.result)))
  const version = line.key(FIELD.resultProtocolVersion)
  return {
    result,
    revision: line.text(FIELD.resultProtocolVersion) ?? '',
    version: typeof version === 'number' ? version : asked,
  }
}

/** Who only asked for the dialect goes on with another of the same protocol. */
export function mismatchOf(
  { row, dialect }: Route,
  spoken: Dialect | undefined,
): 'unknown_method' | 'protocol_mismatch' {
  const isRelated = spoken === undefined || spoken.table.protocol === dialect!.table.protocol
  return row?.asksForDialect && isRelated ? 'unknown_method' : 'protocol_mismatch'
}

function offersIn({ line, dialect }: Route): Record<string, unknown> {
  const { params } = readWritable(line.bytes.subarray(line.start, line.end)) as { params?: Record<string, unknown> }
  const offers = params?.[dialect!.table.greeting!.offers]
  return typeof offers === 'object' && offers !== null ? { ...offers } : {}
}

/** Both are dates: the older of the two is what both can speak; an unknown wish gets what the worker speaks. */
function agreeOn(wanted: string, spoken: string, revisions: readonly string[]): string {
  if (!revisions.includes(wanted)) return spoken
  return wanted < spoken ? wanted : spoken
}

function withRevision(result: Buffer, protocolVersion: string): string {
  return JSON.stringify({ ...(readWritable(result) as object), protocolVersion })
}
