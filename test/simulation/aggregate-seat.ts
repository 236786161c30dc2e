/** A client of a simulated aggregate, of either era: what it asks, what it is owed, and whether what it hears is meant for it. */
import type { ClientId } from '../../src/kernel/vocabulary.ts'
import type { SimOffer } from './aggregate-member.ts'
import type { Chance } from './chance.ts'
import { demand } from './violation.ts'

const PREFIX = 'io.modelcontextprotocol/'
const META = { [`${PREFIX}protocolVersion`]: '2026-07-28', [`${PREFIX}clientCapabilities`]: {} }
/** The member whose workers are one client's at a time. */
export const LENT = 'lent'
const LISTEN = 'subscriptions/listen'

type Params = Readonly<Record<string, unknown>>

interface Asked {
  readonly id: number
  readonly method: string
  /** The member that is meant; undefined: the bus itself answers, or nobody is. */
  readonly pool: string | undefined
  readonly token: string
}

interface Heard {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly message?: string; readonly pool?: string; readonly progressToken?: string }
  readonly result?: {
    readonly content?: readonly { readonly text: string }[]
    readonly contents?: readonly { readonly text: string }[]
    readonly resultType?: string
  }
  readonly error?: { readonly code: number; readonly data?: { readonly reason?: string } }
}

export class SimSeat {
  readonly id: ClientId
  isSlow = false
  readonly unread: Buffer[] = []
  /** Without an answer; given up, which may still be answered. */
  readonly owed = new Map<number, Asked>()
  answered = 0
  byMembers = 0
  asked = 0
  readonly reasons = new Map<string, number>()
  readonly #isModern: boolean
  readonly #offersElicitation: boolean
  readonly #givenUp = new Map<number, Asked>()
  readonly #questions = new Map<string, string>()
  #last = 0

  constructor(id: ClientId, isModern: boolean, offersElicitation: boolean) {
    this.id = id
    this.#isModern = isModern
    this.#offersElicitation = offersElicitation && !isModern
  }

  greeting(): string {
    if (this.#isModern) return this.#request('server/discover', {})
    const capabilities = this.#offersElicitation ? { elicitation: {} } : {}
    const clientInfo = { name: `client ${this.id}`, version: '1' }
    return this.#request('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo })
  }

  /** A request that somebody might make. */
  ask(chance: Chance, offers: readonly SimOffer[]): string {
    const { pool, tools } = chance.pick(offers)
    const roll = chance.next()
    if (roll < 0.1) return this.#request('tools/list', {})
    if (roll < 0.15) return this.#request('ping', {})
    if (roll < 0.25) return this.#request('resources/read', { uri: `r://${pool}` }, pool)
    if (roll < 0.28) return this.#request('resources/read', { uri: 'r://nobody' })
    if (roll < 0.31 && this.#isModern)
      return this.#request(LISTEN, {
        notifications: { toolsListChanged: true, resourceSubscriptions: [`r://${pool}`] },
      })
    if (roll < 0.36) return this.#call(`${pool}_nobody`, undefined)
    return this.#call(`${pool}_${chance.pick(tools)}`, pool)
  }

  #call(name: string, pool: string | undefined): string {
    const token = this.#nextToken()
    const _meta = { progressToken: token }
    return this.#request('tools/call', { name, arguments: { token }, _meta }, pool)
  }

  #nextToken(): string {
    return `g${this.id}-${this.#last + 1}`
  }

  #request(method: string, params: Params, pool?: string): string {
    const token = this.#nextToken()
    const id = ++this.#last
    this.owed.set(id, { id, method, pool, token })
    const meta = this.#isModern ? { _meta: { ...(params['_meta'] as object | undefined), ...META } } : {}
    return `${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, ...meta } })}\n`
  }

  /** Gives up one of what it is owed. */
  cancel(chance: Chance): string | undefined {
    const open = [...this.owed.values()].filter(({ method }) => method !== 'initialize')
    return open.length === 0 ? undefined : this.#giveUp(chance.pick(open))
  }

  /** A subscription lasts until it is given up. */
  endListens(): string | undefined {
    const listen = [...this.owed.values()].find(({ method }) => method === LISTEN)
    return listen === undefined ? undefined : this.#giveUp(listen)
  }

  #giveUp(asked: Asked): string {
    this.owed.delete(asked.id)
    this.#givenUp.set(asked.id, asked)
    const params = { requestId: asked.id, ...(this.#isModern ? { _meta: META } : {}) }
    return `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })}\n`
  }

  /** Answers to some of what it was asked, and to what it was not. */
  answers(chance: Chance): string[] {
    if (chance.is(0.1)) return [`{"jsonrpc":"2.0","id":"q1-nobody","result":{"token":"stolen"}}\n`]
    return this.answerAll().slice(0, 3)
  }

  answerAll(): string[] {
    const lines = [...this.#questions].map(
      ([id, token]) => `${JSON.stringify({ jsonrpc: '2.0', id, result: { token } })}\n`,
    )
    this.#questions.clear()
    return lines
  }

  hear(bytes: Buffer): void {
    for (const line of bytes.toString().trimEnd().split('\n')) this.#take(line, JSON.parse(line) as Heard)
  }

  #take(line: string, heard: Heard): void {
    const { id, method, params } = heard
    if (method === undefined) return this.#takeAnswer(line, heard)
    const token = params?.message ?? params?.progressToken
    // A worker that is lent may still ask for somebody who has gone or given up: whoever has it now is meant (contract 6.7).
    const isMine = token === undefined || params?.pool === LENT || token.startsWith(`g${this.id}-`)
    demand(isMine, 'nobody else sees it', () => `client ${this.id} heard ${line}`)
    if (id === undefined) return
    demand(this.#offersElicitation, 'nobody else sees it', () => `client ${this.id} did not offer to be asked: ${line}`)
    this.asked++
    this.#questions.set(String(id), token!)
  }

  #takeAnswer(line: string, { id, result, error }: Heard): void {
    const asked = this.owed.get(id as number) ?? this.#givenUp.get(id as number)
    demand(asked !== undefined, 'answered once', () => `client ${this.id} was not owed ${line}`)
    this.owed.delete(asked.id)
    this.#givenUp.delete(asked.id)
    this.answered++
    if (error !== undefined) {
      const reason = error.data?.reason ?? String(error.code)
      this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1)
      return
    }
    const isOfEra = (result?.resultType !== undefined) === this.#isModern
    demand(isOfEra, 'bytes unchanged', () => `client ${this.id} heard ${line} to ${asked.method}`)
    if (asked.pool === undefined) return
    this.byMembers++
    const text = result?.content?.[0]?.text ?? `${result?.contents?.[0]?.text} ${asked.token}`
    const isMeant = text.startsWith(`${asked.pool} `) && text.endsWith(` ${asked.token}`)
    demand(isMeant, 'nobody else sees it', () => `client ${this.id} heard ${line} to ${JSON.stringify(asked)}`)
  }
}
