/**
 * The list of sessions that a client of a protocol asks for: its agent's and those that the bus knows, each once, newest
 * first, and nobody else's (contract 12.17).
 *
 * The agent is asked by the bus itself, page by page; one that is slow, or refuses, is left out.
 */
import { spellTime } from '../../wire/calendar.ts'
import type { Envelope } from '../../wire/envelope.ts'
import { FIXED } from '../limits.ts'
import type { Request } from '../owed.ts'
import type { Client, Worker } from '../peers.ts'
import type { Route } from '../route.ts'
import type { Switchboard } from '../switchboard.ts'
import type { PoolId } from '../vocabulary.ts'
import type { Kept } from './kept.ts'
import type { KeptSession } from './kept-session.ts'
import { MARK, paramsOf, resultOf } from './lines.ts'
import { pageOf } from './session-page.ts'

type Info = Readonly<Record<string, unknown>>

interface Listing {
  readonly request: Request
  readonly client: Client
  readonly pool: PoolId
  readonly cwd: string | undefined
  readonly cursor: unknown
  /** What the agent has told so far. */
  readonly told: Info[]
  pages: number
  isDone: boolean
}

export class SessionList {
  readonly #board: Switchboard
  readonly #kept: Kept

  constructor(board: Switchboard, kept: Kept) {
    this.#board = board
    this.#kept = kept
  }

  /** True: the request is answered here, now or when the agent has answered. */
  serve({ request, client, pool, line, dialect }: Route, worker: Worker): boolean {
    if (request === undefined) return false
    const { cwd, cursor } = paramsOf(line)
    const listing: Listing = {
      request,
      client,
      pool: pool.spec.id,
      cwd: typeof cwd === 'string' ? cwd : undefined,
      cursor: cursor ?? undefined,
      told: [],
      pages: 0,
      isDone: false,
    }
    if (!this.#kept.claims.can(worker, 'list')) this.#answer(listing)
    else {
      this.#ask(listing, worker, dialect!.table.keeping!.list, undefined)
      const { core } = this.#board
      core.timers.set(core.nowMs + FIXED.silenceMs, () => this.#answer(listing))
    }
    return true
  }

  #ask(listing: Listing, worker: Worker, method: string, cursor: string | undefined): void {
    const { cwd } = listing
    const params = { ...(cwd === undefined ? {} : { cwd }), ...(cursor === undefined ? {} : { cursor }) }
    listing.pages++
    this.#board.ask(worker, { method, params }, (line, isResult) => {
      const next = isResult ? takePage(listing, line) : undefined
      if (listing.isDone) return
      if (next === undefined || listing.pages >= FIXED.maxListPages || !worker.isAlive) this.#answer(listing)
      else this.#ask(listing, worker, method, next)
    })
  }

  #answer(listing: Listing): void {
    if (listing.isDone) return
    listing.isDone = true
    const { request, cursor } = listing
    const page = pageOf(this.#merge(listing), FIXED.maxListed, cursor)
    if (page === undefined) return this.#board.settle(request, 'bad_params', { problem: 'an unknown cursor' })
    const result = {
      sessions: page.items.map(({ info }) => info),
      ...(page.next === undefined ? {} : { nextCursor: page.next }),
    }
    this.#board.answerRequest(request, `"result":${JSON.stringify(result)}`)
  }

  #merge({ told, client, pool, cwd }: Listing): { id: string; atMs: number; info: Info }[] {
    const { table } = this.#kept
    const listed = new Map<string, Info>()
    for (const info of told) {
      const id = info['sessionId']
      if (typeof id !== 'string' || listed.has(id) || table.isForeign(client.principal, id, pool)) continue
      // Not every agent heeds the folder.
      if (cwd !== undefined && typeof info['cwd'] === 'string' && info['cwd'] !== cwd) continue
      listed.set(id, describe(table.find(client.principal, id), info))
    }
    for (const kept of table.all) {
      if (kept.principal !== client.principal || kept.pool !== pool || listed.has(kept.id)) continue
      // What a client is about to bring back is not known yet.
      if (kept.createdAtMs === 0 || (cwd !== undefined && kept.cwd !== cwd)) continue
      listed.set(kept.id, describe(kept, { sessionId: kept.id, cwd: kept.cwd }))
    }
    return [...listed].map(([id, info]) => ({ id, info, atMs: timeOf(info) }))
  }
}

/** The next page, if there is one. */
function takePage(listing: Listing, line: Envelope): string | undefined {
  const { sessions, nextCursor } = resultOf(line)
  for (const each of Array.isArray(sessions) ? sessions : [])
    if (typeof each === 'object' && each !== null) listing.told.push(each as Info)
  return typeof nextCursor === 'string' ? nextCursor : undefined
}

function describe(kept: KeptSession | undefined, info: Info): Info {
  const mark = {
    state: kept?.state ?? 'stored',
    turn: kept?.turnState ?? 'idle',
    clients: kept?.seats.length ?? 0,
  }
  const _meta = { ...(info['_meta'] as object | undefined), [MARK.session]: mark }
  if (kept === undefined) return { ...info, _meta }
  const title = info['title'] ?? (kept.title === '' ? undefined : kept.title)
  const updatedAt = spellTime(kept.updatedAtMs)
  return { ...info, ...(title === undefined ? {} : { title }), updatedAt, _meta }
}

/** Whose time is not told comes last. */
function timeOf({ updatedAt }: Info): number {
  const atMs = typeof updatedAt === 'string' ? Date.parse(updatedAt) : Number.NaN
  return Number.isNaN(atMs) ? 0 : atMs
}
