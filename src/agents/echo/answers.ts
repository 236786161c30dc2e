/**
 * What the echo agent answers: the request itself, or the least an ACP or MCP client needs for a first success.
 *
 * It speaks a protocol only after that protocol's `initialize`; before, every method is a plain echo.
 * Invariant: a request gets exactly one answer, a notification or an answer gets none.
 */
import { randomUUID } from 'node:crypto'

/** A JSON object from the wire. */
export type Line = Readonly<Record<string, unknown>>

interface Reply {
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
  /** What is said before the answer. */
  readonly before?: readonly Line[]
}

type Answers = Readonly<Record<string, (params: Line) => Reply>>

const info = { name: 'echo', title: 'Echo agent of stdio Bus', version: '1.0.0' }
const tool = {
  name: 'echo',
  description: 'Gives back what it is given.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
}

const tooDeep: Reply = { error: { code: -32600, message: 'this is nested too deeply to be given back' } }

const mcp: Answers = {
  ping: () => ({ result: {} }),
  'tools/list': () => ({ result: { tools: [tool] } }),
  'tools/call': (params) => {
    if (params['name'] !== tool.name) return { error: { code: -32602, message: 'the only tool is "echo"' } }
    const { text } = toRecord(params['arguments'])
    const shown = typeof text === 'string' ? text : jsonOf(params['arguments'] ?? {})
    if (shown === undefined) return tooDeep
    return { result: { content: [{ type: 'text', text: shown }] } }
  },
}

const initialized = {
  acp: {
    protocolVersion: 1,
    agentInfo: info,
    agentCapabilities: { promptCapabilities: { embeddedContext: true } },
    authMethods: [],
  },
  mcp: (protocolVersion: string) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: info }),
}

const maxSessions = 100_000

export class Echo {
  readonly #sessions = new Set<string>()
  readonly #acp: Answers = {
    authenticate: () => ({ result: {} }),
    'session/new': () => ({ result: { sessionId: this.#open() } }),
    'session/prompt': (params) => this.#prompt(params),
  }
  #answers: Answers = {}

  /** The text a line is answered with: whole lines, or nothing. */
  say(line: Line): string {
    const { id, sessionId } = line
    const refused = { jsonrpc: '2.0', ...tooDeep }
    return textOf(this.answer(line)) ?? textOf([{ id, sessionId, ...refused }]) ?? textOf([{ id: null, ...refused }])!
  }

  /** The lines a line is answered with, in order. */
  answer(line: Line): Line[] {
    const { id, method, sessionId } = line
    if (typeof method !== 'string' || id === undefined) return []
    const name = sessionId === undefined ? {} : { sessionId }
    const { before = [], ...outcome } = this.#reply(method, line['params'])
    return [
      ...before.map((said) => ({ jsonrpc: '2.0', ...said, ...name })),
      { jsonrpc: '2.0', id, ...outcome, ...name },
    ]
  }

  #reply(method: string, params: unknown): Reply {
    const version = method === 'initialize' ? toRecord(params)['protocolVersion'] : undefined
    if (typeof version === 'number') return this.#speak(this.#acp, initialized.acp)
    if (typeof version === 'string') return this.#speak(mcp, initialized.mcp(version))
    const answer = Object.hasOwn(this.#answers, method) ? this.#answers[method] : undefined
    return answer ? answer(toRecord(params)) : { result: { echo: params ?? null, method } }
  }

  #speak(answers: Answers, result: unknown): Reply {
    this.#answers = { ...this.#answers, ...answers }
    return { result }
  }

  #open(): string {
    const id = randomUUID()
    this.#sessions.add(id)
    if (this.#sessions.size > maxSessions) this.#sessions.delete(this.#sessions.values().next().value!)
    return id
  }

  #prompt(params: Line): Reply {
    const { sessionId, prompt } = params
    if (typeof sessionId !== 'string' || !this.#sessions.has(sessionId)) {
      return { error: { code: -32002, message: 'Resource not found', data: { sessionId: sessionId ?? null } } }
    }
    const blocks = Array.isArray(prompt) ? prompt.map(toRecord) : []
    const words = blocks.map(({ text, type }) =>
      typeof text === 'string' ? text : `[${typeof type === 'string' ? type : 'block'}]`,
    )
    const update = {
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'text', text: `You said: ${words.join('\n')}` },
    }
    const said = { method: 'session/update', params: { sessionId, update } }
    return { before: [said], result: { stopReason: 'end_turn' } }
  }
}

function textOf(lines: readonly Line[]): string | undefined {
  const texts = lines.map(jsonOf)
  return texts.includes(undefined) ? undefined : texts.map((text) => `${text}\n`).join('')
}

/** Reading takes any depth, writing takes what the stack holds. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function toRecord(value: unknown): Line {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Line) : {}
}
