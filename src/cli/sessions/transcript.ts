/**
 * A session as somebody reads it: what was said, and what happened, line after line with its number.
 *
 * It counts: every line that the bus sends of the session is one number, in order (contract 12.19).
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { clean } from '../chat/clean.ts'
import type { Screen } from '../chat/screen.ts'
import type { Message } from './bus-line.ts'

const UPDATE = 'session/update'
export const EVENT = 'bus::sessions.event'

/** What is worth a line; what a person sees anyway is not. */
const NOTES: Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => string | undefined>> = {
  turn_ended: ({ stopReason, error }) =>
    stopReason === 'end_turn' ? undefined : `the turn has ended: ${String(stopReason ?? error ?? 'unknown')}`,
  question: ({ method }) => `the agent asks: ${String(method)}`,
  driver: ({ name }) => `${String(name)} drives`,
  joined: ({ name, role }) => `${String(name)} has come (${String(role)})`,
  left: ({ name }) => `${String(name)} has gone`,
  gap: ({ from, to }) => `what was said before is not kept any more (${String(from)} to ${String(to)})`,
  lost: () => 'the process of the agent has ended',
  ended: () => 'the session has ended',
  dropped: ({ name }) => `${String(name ?? 'this reader')} did not keep up`,
}

export class Transcript {
  readonly #screen: Screen
  /** The number of the last line. */
  seq: number
  /** What its reader has just typed, and need not read again. */
  typed: string | undefined

  constructor(screen: Screen, seq: number) {
    this.#screen = screen
    this.seq = seq
  }

  /** True: the message is a line of the session. */
  take({ method, params }: Message): boolean {
    if (method === EVENT) {
      this.seq = params.seq
      const note = NOTES[params.kind as string]?.(params)
      if (note !== undefined) this.#screen.note(`· ${note}`)
      if (params.kind === 'turn_ended') this.#screen.endTurn()
      return true
    }
    if (method !== UPDATE) return false
    this.seq++
    this.#show(params.update)
    return true
  }

  #show(update: SessionUpdate): void {
    if (update.sessionUpdate !== 'user_message_chunk') return this.#screen.show(update)
    const { content } = update
    const text = content.type === 'text' ? content.text : `[${content.type}]`
    const isTyped = text === this.typed
    this.typed = undefined
    if (isTyped) return
    this.#screen.note(`> ${clean(text)}`)
  }
}
