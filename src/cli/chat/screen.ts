/**
 * What the user sees: the answer as it comes, thoughts dimmed, plans, tool calls with what they gave, and that something
 * goes on while nothing comes.
 *
 * On a terminal Markdown is rendered and words are wrapped. Piped, stdout holds the answer as it is and nothing else; the
 * rest goes to stderr, without colours. Invariant: no control character of an agent reaches the terminal.
 */
import type { PlanEntry, SessionUpdate, ToolCall, ToolCallUpdate } from '@agentclientprotocol/sdk'
import { createColors } from 'picocolors'
import { CleanChunks, clean } from './clean.ts'
import { Markdown } from './markdown.ts'
import type { Colors } from './paint.ts'
import { PlanView } from './plan-view.ts'
import { Spinner } from './spinner.ts'
import { PlainText, type TextSink, WrappedText } from './text-sinks.ts'
import { mergeTool, newTool, type ToolState, toolLine, toolOutput, toolTitle } from './tool-view.ts'

export interface Out {
  write(text: string): unknown
}

export interface ScreenOptions {
  readonly answer: Out
  /** Where thoughts, tool calls and notes go. */
  readonly aside: Out
  readonly color: boolean
  /** How wide the terminal is now; undefined: it is a pipe, or a terminal that can only print. */
  readonly columns?: (() => number) | undefined
}

type Speech = 'answer' | 'thought' | 'user'
type Sink = Speech | 'note' | 'warning'
type Block = Speech | 'tool' | 'plan' | 'note' | 'question'

const PIPE_COLUMNS = 200
const MAX_TOOLS = 1_000

export class Screen {
  readonly #options: ScreenOptions
  readonly #paint: Colors
  readonly #sinks: Readonly<Record<Sink, TextSink>>
  readonly #chunks = new CleanChunks()
  readonly #plan: PlanView
  readonly #spinner: Spinner | undefined
  readonly #tools = new Map<string, ToolState>()
  #speech: Speech | undefined
  #last: Block | undefined
  #turnSinceMs: number | undefined
  #isCancelling = false

  constructor(options: ScreenOptions) {
    const { answer, aside, color, columns } = options
    this.#options = options
    const paint = createColors(color)
    this.#paint = paint
    this.#plan = new PlanView(paint)
    const spoken = (words: (text: string) => string): TextSink =>
      columns === undefined ? new PlainText(aside, words) : new WrappedText(aside, columns, words)
    this.#sinks = {
      answer: columns === undefined ? new PlainText(answer, String) : new Markdown(answer, { columns, paint }),
      thought: spoken(paint.dim),
      user: spoken(paint.cyan),
      note: spoken(paint.dim),
      warning: spoken(paint.red),
    }
    if (columns !== undefined) this.#spinner = new Spinner({ out: aside, columns, paint: paint.dim })
  }

  get #columns(): number {
    return this.#options.columns?.() ?? PIPE_COLUMNS
  }

  /** A question has been put; `isPrompted`: it stands on the terminal. */
  beginTurn(isPrompted: boolean): void {
    this.#last = isPrompted ? 'question' : undefined
    this.#turnSinceMs = performance.now()
    this.#isCancelling = false
    this.#wait()
  }

  show(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        return this.#say('answer', textOf(update.content))
      case 'agent_thought_chunk':
        return this.#say('thought', textOf(update.content))
      case 'user_message_chunk':
        return this.#say('user', textOf(update.content))
      case 'tool_call':
      case 'tool_call_update':
        return this.#follow(update)
      case 'plan':
        return this.#showPlan(update.entries)
    }
  }

  /** A line of our own. */
  note(text: string): void {
    this.#remark('note', text)
  }

  /** Something went wrong. */
  warn(text: string): void {
    this.#remark('warning', text)
  }

  /** Lines of our own that were made for the terminal. */
  print(lines: readonly string[]): void {
    this.#write('note', lines)
  }

  /** What a tool is about to do, before the user is asked. */
  preview(toolCall: ToolCall | ToolCallUpdate): void {
    const tool = this.#toolOf(toolCall)
    const view = { paint: this.#paint, columns: this.#columns }
    this.#write('tool', [toolLine({ ...tool, status: 'pending' }, view), ...toolOutput(tool, view)])
  }

  cancelling(): void {
    this.#isCancelling = true
    this.#wait()
  }

  /** Somebody else uses the terminal from here on. */
  endLine(): void {
    this.#spinner?.stop()
    if (this.#speech === undefined) return
    const sink = this.#sinks[this.#speech]
    sink.push(this.#chunks.end())
    sink.end()
    this.#speech = undefined
  }

  /** The turn is over; its tool calls are of no more interest. */
  endTurn(): void {
    this.#turnSinceMs = undefined
    this.endLine()
    this.#tools.clear()
  }

  /** An empty line between the answer and the next prompt. */
  part(): void {
    if (this.#options.columns !== undefined && this.#last !== undefined) this.#options.aside.write('\n')
    this.#last = undefined
  }

  #say(speech: Speech, text: string): void {
    if (text === '') return
    this.#spinner?.stop()
    if (this.#speech !== speech) this.#open(speech)
    this.#speech = speech
    this.#sinks[speech].push(this.#chunks.push(text))
    this.#wait()
  }

  /** Steps that are done stand among the tool calls that did them. */
  #showPlan(entries: readonly PlanEntry[]): void {
    const { isWhole, lines } = this.#plan.update(entries, this.#columns)
    this.#write(isWhole ? 'plan' : 'tool', lines)
  }

  #remark(sink: 'note' | 'warning', text: string): void {
    this.#open('note')
    this.#sinks[sink].push(clean(text))
    this.#sinks[sink].end()
    this.#wait()
  }

  #follow(update: ToolCall | ToolCallUpdate): void {
    // What was said before it is finished.
    if (!this.#tools.has(update.toolCallId)) this.endLine()
    const tool = this.#toolOf(update)
    const isNew = tool.status === 'pending' && update.status === 'pending'
    const view = { paint: this.#paint, columns: this.#columns }
    if (update.status === 'completed' || update.status === 'failed') {
      this.#tools.delete(update.toolCallId)
      this.#write('tool', [toolLine(tool, view), ...toolOutput(tool, view)])
    } else if (this.#options.columns === undefined && isNew) this.#write('tool', [toolLine(tool, view)])
    else this.#wait()
  }

  #toolOf(update: ToolCall | ToolCallUpdate): ToolState {
    const tool = this.#tools.get(update.toolCallId) ?? newTool()
    mergeTool(tool, update)
    if (this.#tools.size < MAX_TOOLS) this.#tools.set(update.toolCallId, tool)
    return tool
  }

  #write(block: Block, lines: readonly string[]): void {
    if (lines.length === 0) return
    this.#open(block)
    for (const line of lines) this.#options.aside.write(`${line}\n`)
    this.#wait()
  }

  /** Ends what is open, and on a terminal keeps what is of different kinds apart. */
  #open(block: Block): void {
    this.endLine()
    const isApart = this.#last !== undefined && this.#last !== block && block !== 'note'
    if (this.#options.columns !== undefined && isApart) this.#options.aside.write('\n')
    this.#last = block
  }

  /** Says that the turn goes on, where nothing else stands on the line. */
  #wait(): void {
    if (this.#spinner === undefined || this.#turnSinceMs === undefined) return
    if (this.#speech !== undefined && this.#sinks[this.#speech].isOpen) return
    const running = [...this.#tools.values()].filter(({ status }) => status === 'in_progress' || status === 'pending')
    const tool = running.at(-1)
    const more = running.length > 1 ? ` and ${running.length - 1} more` : ''
    const working = tool === undefined ? 'waiting' : `${toolTitle(tool, this.#columns - 20)}${more}`
    this.#spinner.start(this.#isCancelling ? 'cancelling' : working, this.#turnSinceMs)
  }
}

function textOf(content: { type: string; text?: string }): string {
  return content.type === 'text' ? (content.text ?? '') : `[${content.type}]`
}
