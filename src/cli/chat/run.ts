/**
 * A whole `chat`: one question, the lines of a pipe, or a prompt on the terminal that outlives the agent behind it.
 *
 * It assembles and decides who has the terminal. Exit codes: 0, 1 where the agent failed and nobody is there to ask again,
 * 130 after Ctrl-C.
 */
import { basename } from 'node:path'
import { format } from 'node:util'
import { createColors } from 'picocolors'
import { canMoveCursor, wantsColor } from '../../host/terminal.ts'
import { clip } from '../../wire/columns.ts'
import { printable } from '../../wire/printable.ts'
import { VERSION } from '../version.ts'
import { type Choose, chooseByNumber, chooseWithKeys } from './chooser.ts'
import { openConnection } from './connection.ts'
import { Conversation } from './conversation.ts'
import { ChatFailure } from './failure.ts'
import { HistoryFile } from './history-file.ts'
import { END_OF_INPUT, Keyboard } from './keyboard.ts'
import { askWith } from './permission.ts'
import { readLines, readQuestion } from './prompt.ts'
import { Screen } from './screen.ts'
import { completeSlash, runSlash } from './slash-commands.ts'
import type { Target } from './target.ts'

/** What a shell reports for a program ended by Ctrl-C. */
const INTERRUPTED = 130
const MAX_NAME_COLUMNS = 28

/** Asks the question, or whatever comes without one; resolves with the exit code. */
export async function runChat(question: string | undefined, target: Target): Promise<number> {
  const chat = new Chat(target)
  try {
    return await chat.run(question)
  } finally {
    await chat.close()
  }
}

class Chat {
  readonly #target: Target
  readonly #screen: Screen
  readonly #conversation: Conversation
  readonly #keyboard: Keyboard | undefined
  readonly #choose: Choose
  readonly #canDraw = canMoveCursor(process.stdout)
  readonly #hasColor = wantsColor(process.stdout)
  #leave: () => void = () => {}

  constructor(target: Target) {
    const isTerminal = process.stdout.isTTY === true
    const canAsk = isTerminal && process.stdin.isTTY
    this.#target = target
    this.#screen = new Screen({
      answer: process.stdout,
      aside: isTerminal ? process.stdout : process.stderr,
      color: this.#hasColor,
      columns: this.#canDraw ? () => process.stdout.columns || 80 : undefined,
    })
    this.#keyboard = canAsk && this.#canDraw ? new Keyboard(process.stdin, () => this.#interrupt()) : undefined
    this.#choose = (...asked) => this.#withoutKeys(() => (this.#canDraw ? chooseWithKeys : chooseByNumber)(...asked))
    this.#conversation = new Conversation({
      connect: () => openConnection(target, (line) => this.#screen.note(line)),
      screen: this.#screen,
      ask: canAsk ? askWith(this.#choose) : undefined,
      version: VERSION,
      cwd: process.cwd(),
    })
    // The SDK tells its troubles here, and they hold text of the agent.
    console.error = console.warn = (...parts: unknown[]) => this.#screen.note(format(...parts))
  }

  async run(question: string | undefined): Promise<number> {
    const left = new Promise<number>((resolve) => {
      this.#leave = () => resolve(INTERRUPTED)
    })
    process.on('SIGINT', () => this.#interrupt())
    return Promise.race([this.#converse(question), left])
  }

  async close(): Promise<void> {
    this.#keyboard?.release()
    this.#screen.endLine()
    process.stdin.destroy()
    await this.#conversation.close()
  }

  async #converse(question: string | undefined): Promise<number> {
    this.#keyboard?.watch()
    await this.#conversation.open()
    if (question !== undefined) return (await this.#conversation.ask(question)) === 'cancelled' ? INTERRUPTED : 0
    if (process.stdin.isTTY) return this.#prompt()
    for await (const line of readLines(process.stdin)) await this.#conversation.ask(line)
    return 0
  }

  async #prompt(): Promise<number> {
    const paint = createColors(this.#hasColor)
    const output = process.stdout.isTTY ? process.stdout : process.stderr
    const options = {
      input: process.stdin,
      output: output as typeof process.stdout,
      history: new HistoryFile(),
      canDraw: this.#canDraw,
      keep: (typed: string) => this.#keyboard?.keep(typed),
      complete: (line: string) =>
        completeSlash(
          line,
          this.#conversation.settings.commands.map(({ name }) => name),
        ),
    }
    this.#screen.note(this.#greeting())
    for (;;) {
      this.#screen.part()
      const prompt = `${paint.bold(paint.cyan(this.#name()))} ${paint.dim('❯')} `
      this.#keyboard?.release()
      const typed = this.#keyboard?.takeTyped() ?? ''
      if (typed === END_OF_INPUT) return 0
      const line = await readQuestion(prompt, typed.replace(END_OF_INPUT, ''), options)
      if (line === undefined) return 0
      this.#keyboard?.watch()
      if (line.trim() !== '' && (await this.#take(line)) === 'leave') return 0
    }
  }

  /** Nothing that goes wrong with one line ends the conversation. */
  async #take(line: string): Promise<'leave' | undefined> {
    try {
      const context = { conversation: this.#conversation, screen: this.#screen, choose: this.#choose }
      const outcome = await runSlash(context, line)
      if (outcome === 'question') await this.#askAgain(line)
      return outcome === 'leave' ? 'leave' : undefined
    } catch (error) {
      if (!(error instanceof ChatFailure)) throw error
      this.#screen.warn(error.message)
      await this.#recover().catch((failure: unknown) => {
        if (!(failure instanceof ChatFailure)) throw failure
        const isKnown = failure.message === error.message
        this.#screen.warn(`${isKnown ? '' : `${failure.message}; `}the next question tries again`)
      })
      return undefined
    }
  }

  /** A question that nobody has seen is put again, once, to the session that takes the place of the lost one. */
  async #askAgain(question: string): Promise<void> {
    await this.#recover()
    try {
      await this.#conversation.ask(question, true)
    } catch (error) {
      if (!(error instanceof ChatFailure) || !error.isUnseen) throw error
      await this.#recover()
      await this.#conversation.ask(question, true)
    }
  }

  async #recover(): Promise<void> {
    const { lost } = this.#conversation
    if (lost === undefined) return
    const how = await this.#conversation.recover()
    const what = lost === 'session' ? 'the worker ended' : 'the agent was started again'
    this.#screen.note(
      how === 'loaded'
        ? `${what}; its session was brought back`
        : `${what} and the session is lost; this is a new one, which knows nothing of what was said before`,
    )
  }

  #interrupt(): void {
    if (!this.#conversation.interrupt()) this.#leave()
  }

  /** Somebody else reads the keys meanwhile. */
  async #withoutKeys<T>(act: () => Promise<T>): Promise<T> {
    this.#keyboard?.release()
    try {
      return await act()
    } finally {
      this.#keyboard?.watch()
    }
  }

  #greeting(): string {
    const model = this.#conversation.settings.find('model')
    const label = model?.options.find(({ value }) => value === model.current)?.name
    return [`stdio-bus ${VERSION}`, this.#name(), label && `model ${label}`, '/help shows what can be typed']
      .filter(Boolean)
      .join(' · ')
  }

  /** Whom the user talks to: as it was named, and a program or a whole bus as its agent calls itself. */
  #name(): string {
    const { kind, name } = this.#target
    const isOnlyPlace = kind === 'bus' ? this.#target.pool === undefined : this.#target.command === name
    const shown = isOnlyPlace ? (this.#conversation.agentName ?? basename(name)) : name
    return clip(printable(shown), MAX_NAME_COLUMNS)
  }
}
