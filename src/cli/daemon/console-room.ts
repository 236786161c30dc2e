/**
 * The console of the web doors: its API, its pages, and the codes by which one logs in (contract 15).
 *
 * It joins them to the bus and decides nothing. One for all doors, so that a code and a login count once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { REFUSAL_PAUSE_MS, SlowedRefusals } from '../../access/refusals.ts'
import { ApiAdapter } from '../../console/api/api.ts'
import { type ApiCall, ApiError, ROLES } from '../../console/api/api-call.ts'
import { ChangeTopic } from '../../console/api/changes.ts'
import { Feed, type Topic, type Topics } from '../../console/api/feed.ts'
import { LogLines } from '../../console/api/log-lines.ts'
import { loginRoutes } from '../../console/api/login-routes.ts'
import { Logins } from '../../console/api/logins.ts'
import { Overview } from '../../console/api/overview.ts'
import type { ConsolePort } from '../../console/api/port.ts'
import { busRoutes } from '../../console/api/routes.ts'
import { SessionDrives } from '../../console/api/session-drives.ts'
import { SessionTopic, sessionOf } from '../../console/api/session-lines.ts'
import { sessionRoutes, takeLive } from '../../console/api/session-routes.ts'
import { settingRoutes } from '../../console/api/setting-routes.ts'
import { SnapshotTopic } from '../../console/api/snapshots.ts'
import { traceRoutes } from '../../console/api/trace-routes.ts'
import { PagesAdapter } from '../../console/pages.ts'
import { hostOf } from '../../host/address.ts'
import type { Role } from '../../kernel/rights.ts'
import type { Admitted } from '../../web/port.ts'
import type { Adapter } from '../../web/service.ts'
import type { WebRequest } from '../../web/web-request.ts'

/** What a door gives to its console. */
export interface ConsoleDoor {
  readonly publicUrl: string | undefined
  readonly failed: (error: unknown) => void
}

const PAGES = new URL('../../console/web/', import.meta.url)

export class ConsoleRoom {
  readonly #port: ConsolePort
  readonly #logins: Logins
  readonly #api: (door: ConsoleDoor) => ApiAdapter

  constructor(port: ConsolePort) {
    this.#port = port
    this.#logins = new Logins(Date.now, (admitted) => port.stillHolds(admitted))
    const overview = new Overview(port)
    const logs = new LogLines(port)
    const drives = new SessionDrives(port, (call) => this.#holds(call))
    const topics = topicsOf(
      {
        overview: lookers(new SnapshotTopic((call) => overview.take(call))),
        problems: lookers(new SnapshotTopic((call) => overview.problems(call))),
        logs: lookers(logs),
        sessions: everybody(new SnapshotTopic((call) => takeLive(port, call))),
        traces: everybody(new ChangeTopic((changed) => port.followTraces(changed))),
      },
      (session) => new SessionTopic(port, session, (call, row) => drives.follow(call, row)),
    )
    const feed = new Feed({ topics, stillHolds: (call) => this.#holds(call) })
    const routes = [
      ...loginRoutes(port, this.#logins),
      ...busRoutes(port, { overview, logs, feed }),
      ...sessionRoutes(port, drives),
      ...traceRoutes(port),
      ...settingRoutes(port),
    ]
    this.#api = (door) => new ApiAdapter({ port, logins: this.#logins, routes, ...door })
  }

  /** What a door serves for it. */
  adapters(door: ConsoleDoor): {
    readonly api: Adapter
    readonly console: Adapter
    loggedIn(web: WebRequest): Admitted | undefined
  } {
    const api = this.#api(door)
    return { api, console: new PagesAdapter(PAGES, door.publicUrl), loggedIn: (web) => api.loggedIn(web)?.admitted }
  }

  makeCode(admitted: Admitted): string {
    return this.#logins.makeCode(admitted)
  }

  #holds({ login, admitted }: ApiCall): boolean {
    return login === undefined ? this.#port.stillHolds(admitted) : this.#logins.holds(login)
  }
}

interface TopicRow {
  readonly topic: Topic
  readonly roles: readonly Role[]
}

const lookers = (topic: Topic): TopicRow => ({ topic, roles: ROLES.lookers })
const everybody = (topic: Topic): TopicRow => ({ topic, roles: ROLES.all })

/** Each session is a topic by itself, made for whoever follows it. */
function topicsOf(table: Readonly<Record<string, TopicRow>>, ofSession: (session: string) => Topic): Topics {
  return (name, { admitted }) => {
    const session = sessionOf(name)
    if (session !== undefined) return ofSession(session)
    const row = Object.hasOwn(table, name) ? table[name] : undefined
    if (row?.roles.includes(admitted.identity.rights.role) === false)
      throw new ApiError(403, 'not_allowed', 'Your role may not follow this topic.')
    return row?.topic
  }
}

/** Wrong codes are told as slowly as wrong tokens are (contract 9.25). */
export class SlowCodes {
  readonly #slowed = new SlowedRefusals(() => performance.now())

  /** Settles when it may be told; where too many wait already, the connection ends without a word. */
  async refuse({ connection, response }: WebRequest): Promise<void> {
    const pace = this.#slowed.paceFor(hostOf(connection.peer))
    if (pace === 'after_pause') await pause(REFUSAL_PAUSE_MS)
    else if (pace === 'closed') response.destroy()
  }
}
