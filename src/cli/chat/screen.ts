/**
 * What the user sees: the answer as it comes, thoughts dimmed, tool calls as short lines.
 *
 * Piped, stdout holds the answer and nothing else; the rest goes to stderr, without colours.
 * Invariant: no control character of an agent reaches the terminal.
 */
import type { SessionUpdate, ToolCallStatus } from '@agentclientprotocol/sdk'
import pc from 'picocolors'
import { printableProse } from '../../wire/printable.ts'

export interface Out {
  write(text: string): unknown
}

export interface ScreenOptions {
  readonly answer: Out
  /** Where thoughts, tool calls and notes go. */
  readonly aside: Out
  readonly color: boolean
}

const marks: Readonly<Record<ToolCallStatus, string>> = { pending: '…', in_progress: '▸', completed: '✓', failed: '✗' }

export class Screen {
  readonly #options: ScreenOptions
  readonly #paint: ReturnType<typeof pc.createColors>
  readonly #titles = new Map<string, string>()
  /** Who wrote last, and whether it left the line open. */
  #open: 'answer' | 'thought' | undefined

  constructor(options: ScreenOptions) {
    this.#options = options
    this.#paint = pc.createColors(options.color)
  }

  show(update: SessionUpdate): void {
    if (update.sessionUpdate === 'agent_message_chunk') return this.#say('answer', textOf(update.content))
    if (update.sessionUpdate === 'agent_thought_chunk') return this.#say('thought', textOf(update.content))
    if (update.sessionUpdate === 'tool_call') this.#titles.set(update.toolCallId, update.title)
    if (update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update') {
      if (update.status && update.status !== 'in_progress') this.#tool(update.toolCallId, update.status)
    }
  }

  /** A line of our own. */
  note(text: string): void {
    this.endLine()
    this.#options.aside.write(`${this.#paint.dim(clean(text))}\n`)
  }

  endLine(): void {
    if (this.#open === 'answer') this.#options.answer.write('\n')
    if (this.#open === 'thought') this.#options.aside.write('\n')
    this.#open = undefined
  }

  /** The turn is over; its tool calls are of no more interest. */
  endTurn(): void {
    this.endLine()
    this.#titles.clear()
  }

  #say(kind: 'answer' | 'thought', text: string): void {
    if (text === '') return
    if (this.#open !== undefined && this.#open !== kind) this.endLine()
    const shown = clean(text)
    if (kind === 'answer') this.#options.answer.write(shown)
    else this.#options.aside.write(this.#paint.dim(shown))
    this.#open = shown.endsWith('\n') ? undefined : kind
  }

  #tool(id: string, status: ToolCallStatus): void {
    this.endLine()
    const line = `${marks[status]} ${clean(this.#titles.get(id) ?? 'tool').replaceAll('\n', ' ')}`
    this.#options.aside.write(`${status === 'failed' ? this.#paint.red(line) : this.#paint.cyan(line)}\n`)
  }
}

function textOf(content: { type: string; text?: string }): string {
  return content.type === 'text' ? (content.text ?? '') : `[${content.type}]`
}

/** Text of a peer, with what could drive a terminal made visible. */
export function clean(text: string): string {
  return printableProse(text.replace(/\r\n/g, '\n'))
}
