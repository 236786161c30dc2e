/** A pool whose sessions outlive their clients, on the clock of the test: one agent, and clients that come and go. */
import type { Role } from '../../src/kernel/rights.ts'
import type { Keeping, PoolSpec } from '../../src/kernel/vocabulary.ts'
import { Stage } from '../interop/stage.ts'
import type { Message } from '../support/line-client.ts'

export const KEEPING: Keeping = {
  keepMs: 3_600_000,
  isJournaled: false,
  questionMs: 3_600_000,
  maxBytes: 16_777_216,
  maxKept: 1_000,
}

const CAPABILITIES = { fs: { readTextFile: true, writeTextFile: true }, terminal: true, elicitation: { form: {} } }

export class KeptStage extends Stage {
  readonly #answered = new Set<string>()
  #ids = 100

  constructor(
    keeping: Partial<Keeping> = {},
    pool: Partial<PoolSpec> = {},
    limits: ConstructorParameters<typeof Stage>[1] = {},
  ) {
    super({ protocol: 'acp', keeping: { ...KEEPING, ...keeping }, ...pool }, limits)
  }

  /** A client that has introduced itself. */
  come(name = 'editor', { as, role, offers = CAPABILITIES }: Coming = {}): number {
    const client = this.connect(as, role)
    const id = this.ask(client, 'initialize', {
      protocolVersion: 1,
      clientInfo: { name, version: '1' },
      clientCapabilities: offers,
    })
    const asked = this.lastAsked('initialize')
    if (asked !== undefined && this.answerTo(client, id) === undefined)
      this.say(asked.worker, { id: asked.message.id, result: { protocolVersion: 1, agentCapabilities: {} } })
    return client
  }

  ask(client: number, method: string, params: object = {}): number {
    const id = this.#ids++
    this.send(client, { jsonrpc: '2.0', id, method, params })
    return id
  }

  answerTo(client: number, id: number): Message | undefined {
    return this.atClient.get(client)!.find((message) => message.id === id && message.method === undefined)
  }

  /** What an agent was asked last and has not answered. */
  lastAsked(method: string): { worker: number; message: Message } | undefined {
    for (const [worker, messages] of this.atWorker) {
      const message = messages.findLast((each) => each.method === method)
      if (message !== undefined && !this.#answered.has(`${worker} ${message.id}`)) return { worker, message }
    }
    return undefined
  }

  override say(worker: number, message: object | string): void {
    if (typeof message === 'object' && 'id' in message && !('method' in message))
      this.#answered.add(`${worker} ${message.id}`)
    super.say(worker, message)
  }

  /** The client has a session of this name. */
  open(client: number, sessionId = 's', result: object = {}): string {
    this.ask(client, 'session/new', { cwd: '/work', mcpServers: [] })
    const { worker, message } = this.lastAsked('session/new')!
    this.say(worker, { id: message.id, result: { sessionId, ...result } })
    return sessionId
  }

  prompt(client: number, text: string, sessionId = 's'): number {
    return this.ask(client, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
  }

  /** The agent says something in the session. */
  chunk(text: string, sessionId = 's', worker = 0): void {
    this.update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }, sessionId, worker)
  }

  update(update: object, sessionId = 's', worker = 0): void {
    this.say(worker, { jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } })
  }

  /** The agent ends the turn that it was asked for last. */
  endTurn(stopReason = 'end_turn', worker = 0): void {
    this.say(worker, { id: this.told(worker, 'session/prompt').id, result: { stopReason } })
  }

  load(client: number, sessionId = 's'): number {
    return this.ask(client, 'session/load', { sessionId, cwd: '/', mcpServers: [] })
  }

  resume(client: number, sessionId = 's'): number {
    return this.ask(client, 'session/resume', { sessionId, cwd: '/', mcpServers: [] })
  }

  /** What the client was told, as short words: updates by their text, answers by their id, questions by their method. */
  heard(client: number, from = 0): string[] {
    return this.atClient.get(client)!.slice(from).map(shorten)
  }

  get count(): (client: number) => number {
    return (client) => this.atClient.get(client)!.length
  }

  /** The methods that the worker was told since. */
  toldSince(from: number, worker = 0): string[] {
    return (this.atWorker.get(worker) ?? []).slice(from).map(({ method, id }) => method ?? `answer ${id}`)
  }

  get toldCount(): number {
    return this.atWorker.get(0)?.length ?? 0
  }
}

interface Coming {
  readonly as?: string
  readonly role?: Role
  readonly offers?: object
}

export function shorten({ id, method, params, result, error }: Message): string {
  if (method === 'bus::sessions.event') return `#${params.seq} ${params.kind}`
  if (method === 'session/update') {
    const { sessionUpdate, content, _meta } = params.update
    const mark =
      _meta === undefined
        ? ''
        : Object.entries(_meta)
            .map(([key, value]) => `${key.slice(10)} ${JSON.stringify(value)}`)
            .join()
    return mark === '' || content !== undefined
      ? `${sessionUpdate === 'user_message_chunk' ? '> ' : ''}${content?.text ?? sessionUpdate}${mark}`
      : mark
  }
  if (method !== undefined) return method
  return error === undefined
    ? `ok ${id}${result?.stopReason === undefined ? '' : ` ${result.stopReason}`}`
    : `${error.data?.reason ?? error.code} ${id}`
}
