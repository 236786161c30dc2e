/**
 * A client of one MCP server, of either era, over the socket of a pool (contract 15.10).
 *
 * It offers forms and pages to fill in (elicitation) and nothing else: whatever else a server asks is refused, and everything it asks is
 * answered. What it keeps of a server has a bound.
 */

import { exactly } from '../exact.ts'
import { isObject, type Properties } from '../schema/value.ts'
import { PoolSocket, type Question, type RequestOptions, RpcFailure, type SocketEnding } from '../socket.ts'
import { wordsOf } from '../text.ts'
import { ITEM_KINDS, type Item, type ItemKind, itemsOf } from './items.ts'

/** What a server wants to know, and who waits for it. */
export interface Asked {
  readonly params: Properties
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

export interface McpListener {
  asked(question: Asked): Promise<Properties>
  listChanged(): void
  logged(line: Properties): void
  closed(ending: SocketEnding): void
}

export interface Progress {
  readonly progress: number
  readonly total: number | undefined
  readonly message: string | undefined
}

export interface CallOptions {
  readonly signal: AbortSignal
  readonly onProgress: (progress: Progress) => void
}

export interface Offer {
  readonly items: readonly Item[]
  /** There is more than is kept of it here. */
  readonly isCut: boolean
}

export interface Answer {
  readonly result: unknown
  /** The same with its numbers as they were written, to be shown. */
  readonly exact: unknown
}

export interface Server {
  readonly era: 'handshake' | 'stateless'
  readonly revision: string
  readonly name: string
  readonly version: string
  readonly instructions: string
  readonly capabilities: Properties
}

const HANDSHAKE = '2025-11-25'
const STATELESS = '2026-07-28'
const META = 'io.modelcontextprotocol'
const OFFERS = { elicitation: { form: {}, url: {} } }
const METHOD_NOT_FOUND = -32601
/** Said by the bus of a server of the other era. */
const OTHER_ERA = ['protocol_mismatch', 'unknown_method', undefined]
const MAX_PAGES = 1_000
const MAX_ITEMS = 20_000
const MAX_ROUNDS = 16
const MAX_INPUTS = 16
const MAX_EXACT_CHARS = 1024 * 1024

export class McpClient {
  readonly #socket: PoolSocket
  readonly #listener: McpListener
  readonly #progress = new Map<number, (progress: Progress) => void>()
  readonly #questions = new Map<string | number, AbortController>()
  readonly #clientInfo: { readonly name: string; readonly version: string }
  #era: Server['era'] = 'handshake'
  #calls = 0

  constructor(pool: string, version: string, listener: McpListener) {
    this.#clientInfo = { name: 'stdio-bus console', version }
    this.#listener = listener
    this.#socket = new PoolSocket(pool, {
      notified: (method, params) => this.#notified(method, params),
      asked: (question) => this.#asked(question),
      closed: (ending) => listener.closed(ending),
    })
  }

  /** Begins with the handshake, as most servers know no other way; a server that has none says so. */
  async connect(): Promise<Server> {
    try {
      return await this.#shakeHands()
    } catch (error) {
      const reason = error instanceof RpcFailure ? (isObject(error.data) ? error.data['reason'] : undefined) : ''
      if (!OTHER_ERA.includes(reason as string | undefined)) throw error
      return await this.#discover(error as Error)
    }
  }

  async #shakeHands(): Promise<Server> {
    const params = { protocolVersion: HANDSHAKE, capabilities: OFFERS, clientInfo: this.#clientInfo }
    const welcome = await this.#socket.request('initialize', params)
    if (!isObject(welcome) || typeof welcome['protocolVersion'] !== 'string')
      throw new Error('This pool does not speak MCP: its answer to initialize names no revision.')
    this.#socket.notify('notifications/initialized')
    return serverOf('handshake', welcome['protocolVersion'], welcome)
  }

  async #discover(refusal: Error): Promise<Server> {
    this.#era = 'stateless'
    const found = await this.request('server/discover', {}).catch(() => undefined)
    if (!isObject(found) || !Array.isArray(found['supportedVersions'])) throw refusal
    return serverOf('stateless', STATELESS, found)
  }

  request(method: string, params: Properties): Promise<unknown> {
    return this.#socket.request(method, this.#withMeta(params))
  }

  /** Everything of these kinds that the server offers. */
  async list({ capabilities }: Server): Promise<Offer> {
    const kinds = Object.keys(ITEM_KINDS) as ItemKind[]
    const offered = kinds.filter((kind) => isObject(capabilities[ITEM_KINDS[kind].capability]))
    const asked = offered.length > 0 ? offered : (['tool'] as const)
    const offers = await Promise.all(asked.map((kind) => this.#listOf(kind)))
    return { items: offers.flatMap(({ items }) => items), isCut: offers.some(({ isCut }) => isCut) }
  }

  async #listOf(kind: ItemKind): Promise<Offer> {
    const items = new Map<string, Item>()
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES && items.size < MAX_ITEMS; page++) {
      const result = await this.#pageOf(kind, cursor)
      for (const item of itemsOf(kind, result).slice(0, MAX_ITEMS - items.size)) items.set(item.name, item)
      const next = isObject(result) ? result['nextCursor'] : undefined
      if (typeof next !== 'string' || next === cursor) return { items: [...items.values()], isCut: false }
      cursor = next
    }
    return { items: [...items.values()], isCut: true }
  }

  async #pageOf(kind: ItemKind, cursor: unknown): Promise<unknown> {
    try {
      return await this.request(ITEM_KINDS[kind].list, cursor === undefined ? {} : { cursor })
    } catch (error) {
      if (error instanceof RpcFailure && error.code === METHOD_NOT_FOUND) return {}
      throw error
    }
  }

  /** A call to its end: with its progress, and with what the server wants to know on the way. */
  async call(method: string, params: Properties, { signal, onProgress }: CallOptions): Promise<Answer> {
    let sent = params
    for (let round = 0; round <= MAX_ROUNDS; round++) {
      let line = ''
      const onLine = (answer: string): void => {
        line = answer
      }
      const result = await this.#callOnce(method, sent, { signal, onProgress, onLine })
      if (!isObject(result) || result['resultType'] !== 'input_required')
        return { result, exact: exactOf(line) ?? result }
      const inputResponses = await this.#inputsFor(result['inputRequests'], signal)
      const state = result['requestState']
      sent = { ...params, inputResponses, ...(state !== undefined && { requestState: state }) }
    }
    throw new Error(`The server wanted to know more than ${MAX_ROUNDS} times.`)
  }

  async #callOnce(method: string, params: Properties, options: CallOptions & RequestOptions): Promise<unknown> {
    const { signal, onProgress } = options
    const progressToken = ++this.#calls
    let requestId: number | undefined
    this.#progress.set(progressToken, onProgress)
    const cancel = (): void => {
      if (requestId !== undefined)
        this.#socket.notify('notifications/cancelled', { requestId, reason: 'cancelled in the console' })
    }
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const onId = (id: number): void => {
        requestId = id
      }
      return await this.#socket.request(method, this.#withMeta(params, { progressToken }), { ...options, onId })
    } finally {
      signal.removeEventListener('abort', cancel)
      this.#progress.delete(progressToken)
    }
  }

  close(): void {
    for (const question of this.#questions.values()) question.abort()
    this.#socket.close()
  }

  #withMeta(params: Properties, more: Properties = {}): Properties {
    const stateless = {
      [`${META}/protocolVersion`]: STATELESS,
      [`${META}/clientCapabilities`]: OFFERS,
      [`${META}/clientInfo`]: this.#clientInfo,
    }
    const meta = { ...(this.#era === 'stateless' && stateless), ...more }
    return Object.keys(meta).length === 0 ? params : { ...params, _meta: meta }
  }

  // ---- what the server says and asks ----

  #notified(method: string, params: Properties): void {
    if (method === 'notifications/progress') return this.#progressed(params)
    if (method === 'notifications/cancelled') return this.#questions.get(params['requestId'] as string)?.abort()
    if (method === 'notifications/message') return this.#listener.logged(params)
    if (method.endsWith('/list_changed')) this.#listener.listChanged()
  }

  #progressed({ progressToken, progress, total, message }: Properties): void {
    this.#progress.get(progressToken as number)?.({
      progress: typeof progress === 'number' ? progress : 0,
      total: typeof total === 'number' && total > 0 ? total : undefined,
      message: typeof message === 'string' ? message : undefined,
    })
  }

  async #asked({ id, method, params, signal }: Question): Promise<unknown> {
    if (method === 'ping') return {}
    if (method !== 'elicitation/create') throw new RpcFailure(METHOD_NOT_FOUND, `The console does not offer ${method}.`)
    const question = new AbortController()
    this.#questions.set(id, question)
    try {
      return await this.#listener.asked({ params, signal: AbortSignal.any([signal, question.signal]) })
    } finally {
      this.#questions.delete(id)
    }
  }

  async #inputsFor(requests: unknown, signal: AbortSignal): Promise<Properties> {
    const wanted = Object.entries(isObject(requests) ? requests : {})
    if (wanted.length > MAX_INPUTS) throw new Error('The server wanted to know too much at once.')
    const answers: [string, unknown][] = []
    // One after the other: a person answers them.
    for (const [key, request] of wanted) {
      const { method, params } = isObject(request) ? request : {}
      if (method !== 'elicitation/create')
        throw new Error(`The server wanted ${wordsOf(method)}, which the console does not offer.`)
      answers.push([key, await this.#listener.asked({ params: isObject(params) ? params : {}, signal })])
      signal.throwIfAborted()
    }
    return Object.fromEntries(answers)
  }
}

/** undefined: it is too long for it, or lies too deep. */
function exactOf(line: string): unknown {
  if (line.length > MAX_EXACT_CHARS) return undefined
  try {
    return JSON.parse(line, exactly as never)?.result
  } catch {
    return undefined
  }
}

function serverOf(era: Server['era'], revision: string, welcome: Properties): Server {
  const info = isObject(welcome['serverInfo']) ? welcome['serverInfo'] : {}
  const text = (value: unknown): string => (typeof value === 'string' ? value : '')
  const capabilities = isObject(welcome['capabilities']) ? welcome['capabilities'] : {}
  const instructions = text(welcome['instructions'])
  const name = text(info['title']) || text(info['name'])
  return { era, revision, name, version: text(info['version']), instructions, capabilities }
}
