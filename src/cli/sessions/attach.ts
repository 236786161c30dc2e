/**
 * Takes part in a session from a terminal (contract 12.21): a line is a prompt, a number answers a question, Ctrl-C cancels
 * the turn, Ctrl-D leaves; the session goes on.
 */
import { createInterface, type Interface } from 'node:readline'
import { printable } from '../../wire/printable.ts'
import { clean } from '../chat/clean.ts'
import { Screen } from '../chat/screen.ts'
import type { BusLine, Message } from './bus-line.ts'
import type { SessionRow } from './known-sessions.ts'
import { EVENT, Transcript } from './transcript.ts'

const PERMISSION = 'session/request_permission'
const CANCEL = '$/cancel_request'
const PROMPT = '> '
const ERASE_LINE = '\r\x1b[K'

interface Choice {
  readonly id: string | number
  readonly title: string
  readonly options: readonly { readonly optionId: string; readonly name: string }[]
}

/** Resolves with the exit code when this side leaves or the session ends. */
export async function attachTerminal(line: BusLine, row: SessionRow, role: 'drive' | 'observe'): Promise<number> {
  const session = new TerminalSession(line, row, role)
  return session.run()
}

class TerminalSession {
  readonly #line: BusLine
  readonly #row: SessionRow
  readonly #role: 'drive' | 'observe'
  readonly #screen: Screen
  #transcript: Transcript
  readonly #input: Interface
  #isPrompting = false
  #isRunning = false
  #hasLeft = false
  /** What the agent asks, the oldest first: that one is on the screen. */
  #choices: readonly Choice[] = []
  #leave: (code: number) => void = () => {}

  constructor(line: BusLine, row: SessionRow, role: 'drive' | 'observe') {
    this.#line = line
    this.#row = row
    this.#role = role
    const out = { write: (text: string) => this.#write(text) }
    this.#screen = new Screen({ answer: out, aside: out, color: !process.env['NO_COLOR'] })
    this.#transcript = new Transcript(this.#screen, 0)
    this.#input = createInterface({ input: process.stdin, output: process.stdout, prompt: PROMPT })
  }

  async run(): Promise<number> {
    const left = new Promise<number>((resolve) => {
      this.#leave = resolve
    })
    this.#line.onMessage = (message) => this.#take(message)
    const from = Math.max(this.#row.first_seq, 1)
    this.#transcript = new Transcript(this.#screen, from - 1)
    const { turn } = await this.#line.ask('bus::sessions.attach', {
      session: this.#row.session,
      pool: this.#row.pool,
      role: this.#role,
      from,
    })
    this.#isRunning = turn !== 'idle'
    this.#listen()
    // A quiet moment after the last line of the transcript.
    setTimeout(() => this.#prompt(), 150).unref()
    const code = await Promise.race([left, this.#line.ended.then(() => 1)])
    this.#hasLeft = true
    this.#screen.endLine()
    this.#input.close()
    return code
  }

  #listen(): void {
    this.#input.on('line', (text) => void this.#enter(text))
    this.#input.on('SIGINT', () => this.#interrupt())
    this.#input.on('close', () => {
      this.#write('\n')
      this.#leave(0)
    })
  }

  async #enter(text: string): Promise<void> {
    this.#isPrompting = false
    const [choice] = this.#choices
    if (choice !== undefined) return this.#answer(choice, text)
    if (text.trim() === '') return this.#prompt()
    if (this.#role === 'observe') return this.#screen.note('you only look on: attach without --observe to take part')
    this.#isRunning = true
    this.#transcript.typed = text
    try {
      const prompt = [{ type: 'text', text }]
      await this.#line.ask('session/prompt', { sessionId: this.#row.session, prompt })
    } catch (error) {
      // Who leaves in the middle of a turn waits for nothing any more.
      if (!this.#hasLeft) this.#screen.note(`refused: ${clean((error as Error).message)}`)
    }
  }

  #answer({ id, options }: Choice, text: string): void {
    const chosen = options[Number(text.trim()) - 1]
    if (chosen === undefined) {
      this.#write(`a number from 1 to ${options.length}: `)
      return
    }
    void this.#line.say({ id, result: { outcome: { outcome: 'selected', optionId: chosen.optionId } } })
    this.#drop(id)
  }

  /** It is asked no more: the next one is shown. */
  #drop(id: unknown): void {
    const [before] = this.#choices
    this.#choices = this.#choices.filter((choice) => choice.id !== id)
    const [next] = this.#choices
    if (next !== undefined && next !== before) this.#showChoice(next)
  }

  #interrupt(): void {
    if (this.#role === 'observe') return this.#leave(0)
    if (!this.#isRunning) return this.#screen.note('nothing is under way; Ctrl-D leaves, and the session goes on')
    void this.#line.say({ method: 'session/cancel', params: { sessionId: this.#row.session } })
    for (const { id } of this.#choices) void this.#line.say({ id, result: { outcome: { outcome: 'cancelled' } } })
    this.#choices = []
    this.#screen.note('cancelling')
  }

  #take(message: Message): void {
    const { id, method, params } = message
    if (method === PERMISSION && id !== undefined) return this.#put(id, params)
    if (method === CANCEL) {
      this.#screen.note('somebody else answers, or nobody need')
      return this.#drop(params?.requestId)
    }
    if (id !== undefined) return void this.#line.say({ id, error: { code: -32601, message: 'not here' } })
    if (!this.#transcript.take(message)) return
    if (method !== EVENT) return
    if (params.kind === 'turn_started') this.#isRunning = true
    if (params.kind === 'turn_ended') {
      this.#isRunning = false
      this.#prompt()
    }
    if (params.kind === 'ended' || params.kind === 'lost') this.#leave(0)
  }

  /** Numbered choices; the next line is the answer. */
  #put(id: string | number, params: Message['params']): void {
    const options: Choice['options'] = Array.isArray(params?.options) ? params.options : []
    const choice = { id, title: String(params?.toolCall?.title ?? 'something'), options }
    this.#choices = [...this.#choices, choice]
    if (this.#choices.length === 1) this.#showChoice(choice)
  }

  #showChoice({ title, options }: Choice): void {
    this.#screen.note(`? ${printable(title)}`)
    for (const [index, option] of options.entries())
      this.#write(`  ${index + 1}  ${printable(String(option?.name ?? option?.optionId))}\n`)
    this.#write(`1 to ${options.length}: `)
  }

  #prompt(): void {
    if (this.#isRunning || this.#role === 'observe' || this.#choices.length > 0 || this.#isPrompting) return
    this.#screen.endLine()
    this.#input.prompt(true)
    this.#isPrompting = true
  }

  #write(text: string): void {
    if (this.#isPrompting) process.stdout.write(ERASE_LINE)
    const wasPrompting = this.#isPrompting
    this.#isPrompting = false
    process.stdout.write(text)
    if (!wasPrompting || !text.endsWith('\n')) return
    this.#input.prompt(true)
    this.#isPrompting = true
  }
}
