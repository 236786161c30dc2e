/**
 * One life of a worker of a simulated member: an MCP server of either era that answers, hangs, lies, asks its client and changes
 * what it offers. What its tool does, the name of the tool says.
 */
import type { WorkerGeneration } from '../../src/kernel/events.ts'
import type { PoolId } from '../../src/kernel/vocabulary.ts'
import type { Chance } from './chance.ts'
import { demand } from './violation.ts'

/** What a pool is, and offers now. */
export interface SimOffer {
  readonly pool: PoolId
  readonly isModern: boolean
  tools: string[]
}

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: {
    readonly name?: string
    readonly uri?: string
    readonly requestId?: unknown
    readonly arguments?: { readonly token?: string }
    readonly _meta?: { readonly progressToken?: string }
  }
}

export const TOOLS = ['echo', 'hang', 'progress', 'ask', 'lie', 'change'] as const
const CAPABILITIES = { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} }
/** The first error of a server without a handshake. */
const NO_HANDSHAKE = -32022

export class SimMember {
  readonly of: WorkerGeneration
  readonly offer: SimOffer
  isDead = false
  /** It answers nobody for now. */
  isSilent = false
  readonly #chance: Chance
  /** Tokens of the calls that have come to any life of any member: nothing comes twice. */
  readonly #seen: Set<string>
  readonly #said: string[] = []
  readonly #hung = new Map<number | string, string>()
  readonly #asked = new Map<string, { readonly id: number | string; readonly token: string }>()
  #held = ''
  #questions = 0

  constructor(of: WorkerGeneration, offer: SimOffer, chance: Chance, seen: Set<string>) {
    this.of = of
    this.offer = offer
    this.#chance = chance
    this.#seen = seen
  }

  read(bytes: Buffer): void {
    const lines = `${this.#held}${bytes.toString()}`.split('\n')
    this.#held = lines.pop()!
    for (const line of lines) this.#take(JSON.parse(line) as Message)
  }

  /** Some of what it has to say, in its order. */
  say(): Buffer {
    return Buffer.from(this.#said.splice(0, 1 + this.#chance.int(12)).join(''))
  }

  /** What hangs is answered after all. */
  relent(): void {
    for (const [id, token] of this.#hung) this.#answer(id, this.#text('hang', token))
    this.#hung.clear()
  }

  changeLists(): void {
    this.offer.tools = [...TOOLS, `t${this.#chance.int(1_000)}`]
    this.#write({ method: 'notifications/tools/list_changed' })
  }

  #write(message: object): void {
    this.#said.push(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  #answer(id: number | string, result: object): void {
    this.#write({ id, result: { ...result, ...(this.offer.isModern ? { resultType: 'complete' } : {}) } })
  }

  #text(tool: string, token: string): object {
    return { content: [{ type: 'text', text: `${this.offer.pool} ${tool} ${token}` }] }
  }

  #take({ id, method, params, ...answer }: Message): void {
    if (method === undefined) return this.#hearAnswer(String(id), answer)
    if (method === 'notifications/cancelled') return void this.#hung.delete(params?.requestId as string)
    if (id === undefined) return
    const { isModern, pool, tools } = this.offer
    if (method === 'initialize' && isModern)
      return this.#write({ id, error: { code: NO_HANDSHAKE, message: 'no handshake' } })
    if (method === 'initialize')
      return this.#answer(id, {
        protocolVersion: '2025-11-25',
        capabilities: CAPABILITIES,
        serverInfo: { name: pool, version: '1' },
      })
    if (method === 'server/discover' && isModern)
      return this.#answer(id, { supportedVersions: ['2026-07-28'], capabilities: CAPABILITIES })
    if (method === 'tools/list') return this.#answer(id, { tools: tools.map((name) => ({ name })) })
    if (method === 'resources/list') return this.#answer(id, { resources: [{ uri: `r://${pool}`, name: pool }] })
    if (method === 'resources/templates/list') return this.#answer(id, { resourceTemplates: [] })
    if (method === 'resources/read') return this.#answer(id, { contents: [{ uri: params?.uri, text: pool }] })
    if (method === 'subscriptions/listen') return undefined
    if (method === 'tools/call') return this.#call(id, params!)
    return this.#write({ id, error: { code: -32601, message: 'unknown' } })
  }

  #call(id: number | string, { name, arguments: args, _meta }: NonNullable<Message['params']>): void {
    const token = args?.token ?? ''
    demand(!this.#seen.has(token), 'justified', () => `${this.offer.pool} was sent ${token} a second time`)
    this.#seen.add(token)
    const done = (): void => this.#answer(id, this.#text(name!, token))
    if (name === 'hang') return void this.#hung.set(id, token)
    if (name === 'ask') return this.#ask(id, token)
    if (name === 'progress' && _meta?.progressToken !== undefined)
      for (const progress of [1, 2])
        this.#write({ method: 'notifications/progress', params: { progressToken: _meta.progressToken, progress } })
    if (name === 'lie') this.#write({ id: `nobody-${token}`, result: {} })
    if (name === 'change') this.changeLists()
    done()
  }

  #ask(id: number | string, token: string): void {
    const question = `own-${++this.#questions}`
    this.#asked.set(question, { id, token })
    this.#write({ id: question, method: 'elicitation/create', params: { message: token, pool: this.offer.pool } })
  }

  #hearAnswer(question: string, answer: object): void {
    const asked = this.#asked.get(question)
    demand(asked !== undefined, 'nobody else sees it', () => `${this.offer.pool} did not ask ${question}`)
    this.#asked.delete(question)
    // An answer without a token is the bus's, in the place of a client that cannot or has gone.
    const { token = asked.token } = (answer as { result?: { token?: string } }).result ?? {}
    const isMeant = token === asked.token
    demand(isMeant, 'nobody else sees it', () => `${question} of ${asked.token} was answered for ${token}`)
    this.#answer(asked.id, this.#text('ask', asked.token))
  }
}
