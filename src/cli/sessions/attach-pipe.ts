/**
 * Takes part in a session from a pipe (contract 12.21): every line is a prompt, only the agent's words go out.
 *
 * It answers no question. Where others take part it leaves the drive to them when one comes, and looks on until the next
 * prompt; where nobody does, the question waits for whoever comes. It counts, so that no word is said twice or is missing.
 */
import { createInterface } from 'node:readline'
import { printable } from '../../wire/printable.ts'
import { clean } from '../chat/clean.ts'
import type { BusLine, Message } from './bus-line.ts'
import { findSession, isLive, type SessionRow } from './known-sessions.ts'
import { EVENT } from './transcript.ts'

type Role = 'drive' | 'observe'

/** Resolves with the exit code when the input and its turns have ended, or the session has. */
export async function attachPipe(line: BusLine, row: SessionRow, role: Role): Promise<number> {
  const session = new PipeSession(line, row)
  const ended = Promise.race([session.over, line.ended])
  await session.attach(role)
  // Of one that has ended nothing more is to come.
  if (role === 'observe') await (isLive(row) ? ended : undefined)
  else await Promise.race([session.promptAll(), ended])
  session.speech.end()
  return 0
}

class PipeSession {
  readonly speech = new Speech()
  readonly over: Promise<void>
  readonly #line: BusLine
  readonly #row: SessionRow
  #role: Role = 'observe'
  /** The number of the last line that has come, and up to which the words have gone out. */
  #seq: number | undefined
  #spokenTo = 0
  #end: () => void = () => {}

  constructor(line: BusLine, row: SessionRow) {
    this.#line = line
    this.#row = row
    this.over = new Promise((resolve) => {
      this.#end = resolve
    })
    line.onMessage = (message) => this.#take(message)
  }

  async attach(role: Role): Promise<void> {
    const { session, pool } = this.#row
    const from = this.#seq === undefined ? undefined : this.#seq + 1
    this.#role = role
    // What comes behind the answer is counted from there.
    const onAnswer = ({ result }: Message): void => {
      this.#seq = from === undefined ? (result?.seq ?? 0) : from - 1
    }
    await this.#line.ask('bus::sessions.attach', { session, pool, role, from }, onAnswer)
  }

  async promptAll(): Promise<void> {
    const { session: sessionId } = this.#row
    for await (const text of createInterface({ input: process.stdin })) {
      if (text.trim() === '') continue
      if (this.#role === 'observe') await this.attach('drive')
      await this.#line.ask('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
      this.speech.end()
    }
  }

  #take({ id, method, params }: Message): void {
    if (id !== undefined && method !== undefined) return this.#leaveToOthers(method)
    if (method !== EVENT && method !== UPDATE) return
    this.#seq = method === EVENT ? params.seq : (this.#seq ?? 0) + 1
    if (this.#seq! <= this.#spokenTo) return
    this.#spokenTo = this.#seq!
    if (method === UPDATE) this.speech.say(spokenIn(params.update))
    else if (params.kind === 'ended' || params.kind === 'lost') this.#end()
  }

  #leaveToOthers(method: string): void {
    process.stderr.write(`stdio-bus: the agent asks (${printable(method)}); this is left to others\n`)
    // Who cannot look on any more has lost the session or the bus, and is told so by what it waits for.
    if (this.#role === 'drive') this.#stepBack().catch(() => {})
  }

  async #stepBack(): Promise<void> {
    const { session, pool } = this.#row
    const { clients } = await findSession(this.#line, session, pool)
    const isAlone = clients.filter(({ role }) => role === 'drive').length < 2
    if (!isAlone && this.#role === 'drive') await this.attach('observe')
  }
}

const UPDATE = 'session/update'

/** The agent's words on stdout; what it says in one turn ends with a line. */
class Speech {
  #isOpen = false

  say(text: string): void {
    if (text === '') return
    process.stdout.write(clean(text))
    this.#isOpen = !text.endsWith('\n')
  }

  end(): void {
    if (this.#isOpen) process.stdout.write('\n')
    this.#isOpen = false
  }
}

function spokenIn(update: { sessionUpdate?: unknown; content?: { type?: unknown; text?: unknown } }): string {
  if (update?.sessionUpdate !== 'agent_message_chunk') return ''
  return typeof update.content?.text === 'string' ? update.content.text : ''
}
