/**
 * A client of an ACP pool: introduced once, with sessions side by side (contract 13.14, 13.15).
 *
 * It offers the agent nothing: no files, no terminals, no elicitation. Whatever the agent asks it gets an answer at once:
 * a permission by the policy of whoever runs the session, anything else a refusal.
 */
import { CODE } from '../wire/jsonrpc.ts'
import type { PermissionPolicy } from './agent-spec.ts'
import { fault } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'
import { decidePermission } from './permission-policy.ts'
import type { Conversation, ErrorBody, GatewayPort, Reply } from './port.ts'

export interface PromptCapabilities {
  readonly image: boolean
  readonly audio: boolean
  readonly embeddedContext: boolean
}

export interface AgentFacts {
  readonly prompt: PromptCapabilities
  readonly canClose: boolean
}

/** A result, and the worker that gave it; null: the bus did. */
export interface Told {
  readonly result: unknown
  readonly worker: string | null
}

/** Who listens to a session. */
export interface SessionEar {
  readonly policy: PermissionPolicy
  updated(update: JsonObject): void
  /** A permission was asked for, and this was said. */
  decided(asked: JsonObject, outcome: unknown): void
}

/** A fault of the agent, or of the bus in its place. */
export class AgentRefusal extends Error {
  readonly body: ErrorBody

  constructor(body: ErrorBody) {
    super(body.message)
    this.body = body
  }
}

const OFFERS = { fs: { readTextFile: false, writeTextFile: false }, terminal: false } as const
const REFUSAL = { code: CODE.methodNotFound, message: 'The caller of an agent has no files, terminals or forms' }

export class AcpPeer {
  readonly #conversation: Conversation
  readonly #open = new Map<unknown, (reply: Reply, worker: string | null) => void>()
  readonly #ears = new Map<string, SessionEar>()
  #facts: Promise<AgentFacts> | undefined
  #lastId = 0
  #hasLeft = false

  constructor(port: GatewayPort, pool: string, client: number | undefined) {
    this.#conversation = port.converse(pool, client, (message, _bytes, worker) =>
      this.#receive(message, worker ?? null),
    )
  }

  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** It has said, or is being asked, what it can do. */
  get isIntroduced(): boolean {
    return this.#facts !== undefined
  }

  /** What the agent can do; it is asked once, and again when that failed. */
  facts(): Promise<AgentFacts> {
    if (this.#facts !== undefined) return this.#facts
    const asked = this.#introduce()
    this.#facts = asked
    asked.catch(() => {
      this.#facts = undefined
    })
    return asked
  }

  async #introduce(): Promise<AgentFacts> {
    const clientInfo = { name: 'stdio-bus', version: '0.1.0' }
    const params = { protocolVersion: 1, clientCapabilities: OFFERS, clientInfo }
    const said = objectOr((await this.request('initialize', params)).result)
    const capabilities = objectOr(said['agentCapabilities'])
    const prompt = objectOr(capabilities['promptCapabilities'])
    return {
      prompt: {
        image: prompt['image'] === true,
        audio: prompt['audio'] === true,
        embeddedContext: prompt['embeddedContext'] === true,
      },
      canClose: isObject(objectOr(capabilities['sessionCapabilities'])['close']),
    }
  }

  /** An error is thrown as `AgentRefusal`. */
  request(method: string, params: JsonObject): Promise<Told> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      if (this.#hasLeft) return reject(new AgentRefusal(fault('caller_gone')))
      this.#open.set(id, (reply, worker) => {
        if ('error' in reply) reject(new AgentRefusal(reply.error))
        else resolve({ result: reply.result, worker })
      })
      this.#conversation.send({ jsonrpc: '2.0', id, method, params })
    })
  }

  tell(method: string, params: JsonObject): void {
    this.#conversation.send({ jsonrpc: '2.0', method, params })
  }

  listen(session: string, ear: SessionEar): void {
    this.#ears.set(session, ear)
  }

  deafen(session: string): void {
    this.#ears.delete(session)
  }

  /** Its turns are cancelled and its sessions end. */
  leave(): void {
    this.#hasLeft = true
    this.#conversation.leave()
    const open = [...this.#open.values()]
    this.#open.clear()
    for (const settle of open) settle({ error: fault('caller_gone') }, null)
  }

  #receive({ id, method, params, error, result }: JsonObject, worker: string | null): void {
    if (method === undefined) {
      const settle = this.#open.get(id)
      this.#open.delete(id)
      return settle?.(isObject(error) ? { error: error as unknown as ErrorBody } : { result }, worker)
    }
    const said = objectOr(params)
    const ear = this.#ears.get(said['sessionId'] as string)
    if (id === undefined) {
      if (method === 'session/update') ear?.updated(objectOr(said['update']))
      return
    }
    if (method !== 'session/request_permission') return this.#answer(id, { error: REFUSAL })
    const outcome = decidePermission(ear?.policy ?? 'deny', said)
    this.#answer(id, { result: { outcome } })
    ear?.decided(said, outcome)
  }

  #answer(id: unknown, reply: Reply): void {
    this.#conversation.send({ jsonrpc: '2.0', id, ...reply })
  }
}
