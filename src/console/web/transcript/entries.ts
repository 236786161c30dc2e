/**
 * What was said, as a person reads it: chunks put together, a tool call with all that is known of it, a plan as it is now (contract
 * 15.8). It reads what agents write, of which nothing is certain, and never throws.
 */
import type { Line } from './lines.ts'

const EVENT = 'bus::sessions.event'

// biome-ignore lint/suspicious/noExplicitAny: of a peer
type Anything = any

export interface Block {
  readonly type: string
  readonly [key: string]: Anything
}

export interface Tool {
  readonly title: string
  readonly status: string
  readonly kind: string
  readonly content: readonly Anything[]
  readonly rawInput: unknown
  readonly rawOutput: unknown
}

type Speaker = 'person' | 'agent' | 'thought'

interface Said {
  readonly kind: Speaker
  text: string
  readonly others: Block[]
}

/** `seq`: the last line that has changed it. */
export type Entry = { readonly key: string; seq: number } & (
  | Said
  | { readonly kind: 'tool'; tool: Tool }
  | { readonly kind: 'plan'; steps: readonly { readonly content: string; readonly status: string }[] }
  | { readonly kind: 'note'; readonly text: string; readonly isBad?: boolean }
  | { readonly kind: 'question'; readonly question: Question }
)

export interface Question {
  readonly number: number
  readonly method: string
  readonly params: Anything
  readonly at: string
  /** Who has answered. */
  answeredBy: string | undefined
}

const CHUNKS: Readonly<Record<string, Speaker>> = {
  user_message_chunk: 'person',
  agent_message_chunk: 'agent',
  agent_thought_chunk: 'thought',
}

/** What is worth a line; what a person sees anyway is not. */
const NOTES: Readonly<Record<string, (params: Anything) => string | undefined>> = {
  turn_ended: ({ stopReason, error }) =>
    stopReason === 'end_turn' ? undefined : `The turn has ended: ${text(stopReason ?? error ?? 'unknown')}.`,
  driver: ({ name }) => `${text(name)} drives.`,
  joined: ({ name, role }) => `${text(name)} has come${role === 'observe' ? ' to look on' : ''}.`,
  left: ({ name }) => `${text(name)} has gone.`,
  gap: ({ from, to }) => `Lines ${text(from)} to ${text(to)} are not kept any more.`,
  lost: () => 'The process of the agent has ended.',
  ended: () => 'The session has ended.',
  note: ({ text: said }) => text(said),
  dropped: ({ name }) => `${text(name)} did not keep up and was taken off.`,
}

/** What an update may say beside words, in words. */
const STATES: Readonly<Record<string, (update: Anything) => string | undefined>> = {
  current_mode_update: ({ currentModeId }) => `The mode is ${text(currentModeId)}.`,
}

export function entriesOf(lines: readonly Line[]): Entry[] {
  const reading = new Reading()
  for (const line of lines) reading.take(line)
  return reading.entries
}

/** Reads line by line, where they come one by one. */
export class Reading {
  readonly entries: Entry[] = []
  readonly #tools = new Map<string, Extract<Entry, { kind: 'tool' }>>()
  readonly #questions = new Map<number, Extract<Entry, { kind: 'question' }>>()
  #plan: Extract<Entry, { kind: 'plan' }> | undefined

  take({ seq, method, params }: Line): void {
    if (method === EVENT) return this.#event(seq, params ?? {})
    const update = params?.update
    const kind = update?.sessionUpdate
    if (typeof kind !== 'string') return
    const speaker = CHUNKS[kind]
    if (speaker !== undefined) this.#words(seq, speaker, update.content)
    else if (kind === 'tool_call' || kind === 'tool_call_update') this.#tool(seq, update)
    else if (kind === 'plan') this.#planned(seq, update.entries)
    else this.#note(seq, STATES[kind]?.(update))
  }

  /** Of more than so many entries the oldest go; whether any have. */
  forget(most: number): boolean {
    const gone = this.entries.splice(0, Math.max(0, this.entries.length - most))
    for (const entry of gone) {
      if (entry.kind === 'question') this.#questions.delete(entry.question.number)
      if (entry.kind === 'tool') for (const [id, tool] of this.#tools) if (tool === entry) this.#tools.delete(id)
    }
    return gone.length > 0
  }

  #words(seq: number, kind: Speaker, content: Anything): void {
    const last = this.entries.at(-1)
    let said = last?.kind === kind ? (last as Said & { seq: number }) : undefined
    // What comes behind an image is said behind it.
    if (said === undefined || (said.others.length > 0 && content?.type === 'text')) {
      const begun = { key: `said-${seq}`, seq, kind, text: '', others: [] }
      this.entries.push(begun)
      said = begun
    }
    said.seq = seq
    if (content?.type === 'text') said.text += text(content.text)
    else if (typeof content?.type === 'string') said.others.push(content)
  }

  #tool(seq: number, update: Anything): void {
    const id = text(update.toolCallId)
    let entry = this.#tools.get(id)
    if (entry === undefined) {
      entry = { key: `tool-${seq}`, seq, kind: 'tool', tool: NEW_TOOL }
      this.#tools.set(id, entry)
      this.entries.push(entry)
    }
    const { tool } = entry
    entry.seq = seq
    entry.tool = {
      title: update.title == null ? tool.title : text(update.title),
      status: update.status == null ? tool.status : text(update.status),
      kind: update.kind == null ? tool.kind : text(update.kind),
      content: Array.isArray(update.content) ? update.content : tool.content,
      rawInput: update.rawInput ?? tool.rawInput,
      rawOutput: update.rawOutput ?? tool.rawOutput,
    }
  }

  /** One plan a turn, as it is now. */
  #planned(seq: number, steps: Anything): void {
    if (!Array.isArray(steps)) return
    if (this.#plan === undefined) {
      this.#plan = { key: `plan-${seq}`, seq, kind: 'plan', steps: [] }
      this.entries.push(this.#plan)
    }
    this.#plan.seq = seq
    this.#plan.steps = steps.map((step) => ({ content: text(step?.content), status: text(step?.status) }))
  }

  #event(seq: number, params: Anything): void {
    const { kind } = params
    if (kind === 'turn_started') this.#plan = undefined
    if (kind === 'question') return this.#ask(seq, params)
    if (kind === 'answered') return this.#answered(seq, params)
    this.#note(seq, NOTES[kind]?.(params), kind === 'lost' || kind === 'gap' || params.isBad === true)
  }

  #ask(seq: number, { method, params, at }: Anything): void {
    const question = { number: seq, method: text(method), params: params ?? {}, at: text(at), answeredBy: undefined }
    const entry = { key: `question-${seq}`, seq, kind: 'question' as const, question }
    this.#questions.set(seq, entry)
    this.entries.push(entry)
  }

  #answered(seq: number, { question, by }: Anything): void {
    const entry = this.#questions.get(Number(question))
    if (entry === undefined) return
    entry.question.answeredBy = text(by ?? 'somebody')
    entry.seq = seq
  }

  #note(seq: number, said: string | undefined, isBad = false): void {
    if (said !== undefined) this.entries.push({ key: `note-${seq}`, seq, kind: 'note', text: said, isBad })
  }
}

const NEW_TOOL: Tool = {
  title: 'tool',
  status: 'pending',
  kind: '',
  content: [],
  rawInput: undefined,
  rawOutput: undefined,
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}
