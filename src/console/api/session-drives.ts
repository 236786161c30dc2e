/**
 * Taking part in kept sessions by calls of the API (contract 15.8): one client of the bus for each caller and session.
 *
 * It stays while its caller looks at the session, and for a moment after its last call; then it goes as any client does, and the
 * session goes on without it. So many there may be, of which the idlest goes.
 */
import { type ApiCall, ApiError } from './api-call.ts'
import { type BusClient, type BusMessage, readMessage } from './bus-client.ts'
import type { ConsolePort, OpenQuestion, SessionRow } from './port.ts'

const MAX_DRIVES = 64
const IDLE_MS = 30_000
const LOOK_MS = 1_000
/** A refusal comes at once; what has not come by then is under way. */
const REFUSAL_MS = 250
/** A question is put to whoever begins to drive in this time. */
const PUT_MS = 2_000
const CANCEL = '$/cancel_request'

interface Drive {
  readonly call: ApiCall
  readonly client: BusClient
  /** What the agent has asked this client, in order. */
  readonly put: Map<string | number, BusMessage>
  /** Settles when it drives. */
  readonly ready: Promise<unknown>
  usedMs: number
}

export class SessionDrives {
  readonly #port: ConsolePort
  readonly #stillHolds: (call: ApiCall) => boolean
  readonly #drives = new Map<string, Drive>()
  readonly #followers = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(port: ConsolePort, stillHolds: (call: ApiCall) => boolean) {
    this.#port = port
    this.#stillHolds = stillHolds
  }

  /** The caller looks at the session, until what is returned is called. */
  follow(call: ApiCall, row: SessionRow): () => void {
    const key = keyOf(call, row)
    this.#followers.set(key, (this.#followers.get(key) ?? 0) + 1)
    return () => {
      const left = this.#followers.get(key)! - 1
      if (left === 0) this.#followers.delete(key)
      else this.#followers.set(key, left)
    }
  }

  isDriving(call: ApiCall, row: SessionRow): boolean {
    return this.#drives.has(keyOf(call, row))
  }

  /** Settles when the caller takes part. */
  async attach(call: ApiCall, row: SessionRow): Promise<void> {
    await this.#driveOf(call, row).ready
  }

  detach(call: ApiCall, row: SessionRow): void {
    this.#end(keyOf(call, row))
  }

  /** Settles when the prompt is refused, answered, or under way. */
  async prompt(call: ApiCall, row: SessionRow, prompt: readonly unknown[]): Promise<unknown> {
    const { client, ready } = this.#driveOf(call, row)
    await ready
    const answered = client
      .ask<{ stopReason?: unknown }>('session/prompt', { sessionId: row.session, prompt })
      .then(({ stopReason }) => ({ turn: 'idle', stop_reason: stopReason ?? null }))
    // Whoever does not wait for it is not told of its failure.
    answered.catch(() => {})
    return Promise.race([answered, after(REFUSAL_MS, { turn: 'running' })])
  }

  async cancel(call: ApiCall, row: SessionRow): Promise<void> {
    const { client, ready } = this.#driveOf(call, row)
    await ready
    client.say({ method: 'session/cancel', params: { sessionId: row.session } })
  }

  /** Answers a question of the agent, as its driver; whoever comes second is told so. */
  async answer(call: ApiCall, row: SessionRow, question: number, result: object): Promise<void> {
    if (this.#find(row, question) === undefined) throw ANSWERED
    const drive = this.#driveOf(call, row)
    await drive.ready
    const untilMs = Date.now() + PUT_MS
    for (;;) {
      const asked = this.#find(row, question)
      if (asked === undefined) throw ANSWERED
      const id = idOf(drive, asked, this.#openOf(row))
      if (id !== undefined) {
        // What cannot be said leaves the question open.
        drive.client.say({ id, result })
        drive.put.delete(id)
        return
      }
      if (Date.now() > untilMs || drive.client.isOver) throw NOT_PUT
      await after(20, undefined)
    }
  }

  #openOf({ session, pool, principal }: SessionRow): OpenQuestion[] {
    return this.#port.sessions
      .openQuestions()
      .filter((each) => each.session === session && each.pool === pool && each.principal === principal)
  }

  #find(row: SessionRow, question: number): OpenQuestion | undefined {
    return this.#openOf(row).find(({ seq }) => seq === question)
  }

  #driveOf(call: ApiCall, row: SessionRow): Drive {
    const key = keyOf(call, row)
    const known = this.#drives.get(key)
    if (known !== undefined && !known.client.isOver) {
      known.usedMs = Date.now()
      return known
    }
    const drive = this.#begin(call, row)
    this.#drives.set(key, drive)
    drive.ready.catch(() => this.#end(key))
    if (this.#drives.size > MAX_DRIVES) this.#end(this.#idlest())
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS)
    return drive
  }

  #begin(call: ApiCall, { session, pool }: SessionRow): Drive {
    const client = this.#port.openClient(call.admitted, call.web.connection.peer, false, pool)
    const put: Drive['put'] = new Map()
    client.onMessage = (message) => {
      const { id, method, params } = message
      if (id !== undefined) put.set(id, message)
      if (method === CANCEL) put.delete(params?.['requestId'] as string | number)
    }
    // An agent of one client alone would be started for the greeting.
    const greeted = this.#port.sessions.isShared(pool)
      ? client.ask('initialize', greetingOf(call)).catch(() => {})
      : Promise.resolve()
    const ready = greeted.then(() => client.ask('bus::sessions.attach', { session, pool, role: 'drive' }))
    return { call, client, put, ready, usedMs: Date.now() }
  }

  #idlest(): string {
    const [idlest] = [...this.#drives].sort(([, one], [, other]) => one.usedMs - other.usedMs)
    return idlest![0]
  }

  #look(): void {
    const nowMs = Date.now()
    for (const [key, { call, client, usedMs }] of this.#drives) {
      const isIdle = !this.#followers.has(key) && nowMs - usedMs > IDLE_MS
      if (isIdle || client.isOver || !this.#stillHolds(call)) this.#end(key)
    }
  }

  #end(key: string): void {
    this.#drives.get(key)?.client.leave()
    this.#drives.delete(key)
    if (this.#drives.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

const ANSWERED = new ApiError(409, 'already_answered', 'This has been answered, or is not asked any more.')
const NOT_PUT = new ApiError(409, 'not_put', 'The agent asks this of another client alone.')

/** What this client can do: be asked for permission, and fill in forms. */
function greetingOf({ admitted: { identity } }: ApiCall): object {
  return {
    protocolVersion: 1,
    clientInfo: { name: 'stdio-bus-console', title: `${identity.name} (console)`, version: '1' },
    clientCapabilities: { elicitation: { form: {} } },
  }
}

function keyOf({ login, admitted }: ApiCall, { session, pool, principal }: SessionRow): string {
  return JSON.stringify([login?.key ?? admitted.identity.principal, pool, principal, session])
}

/** The id under which the question was put to the client: the agent may ask the same twice, and asks in order. */
function idOf({ put }: Drive, asked: OpenQuestion, open: readonly OpenQuestion[]): string | number | undefined {
  // Read as the message was.
  const { params: wanted } = readMessage(Buffer.from(`{"params":${asked.params}}`))
  const params = JSON.stringify(wanted)
  const isSame = (other: OpenQuestion): boolean => other.method === asked.method && other.params === asked.params
  const place = open.filter(isSame).findIndex(({ seq }) => seq === asked.seq)
  const same = [...put].filter(
    ([, message]) => message.method === asked.method && JSON.stringify(message.params ?? {}) === params,
  )
  return same[place]?.[0]
}

function after<Value>(ms: number, value: Value): Promise<Value> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms))
}
