/**
 * Agents that read to the end of their input, answer once and exit: a process for each call.
 *
 * An answer is matched by its process, never by its id, since such agents invent ids. At most `instances` processes run
 * at a time; callers wait in order, bounded in number and time. What the agent prints besides JSON objects is skipped.
 * An agent that has answered and does not exit is ended after a while.
 */
import { type Adapter, agentMessage, type Invocation, type Outcome } from './adapter.ts'
import type { StdioAgent } from './agent-spec.ts'
import { type Answer, readAnswer, readPartial } from './answers.ts'
import { fault } from './faults.ts'
import { JsonObjectSplitter } from './json-framing.ts'
import { isObject, type JsonObject } from './json-object.ts'
import type { ErrorBody, OneshotEnd, OneshotProcess, SpawnOneshot } from './port.ts'
import { piecesOf, type Turns } from './turns.ts'
import { Turnstile } from './turnstile.ts'

export function oneshotAdapter(
  agent: StdioAgent,
  spawn: SpawnOneshot,
  turns: Turns,
  turnstile = new Turnstile(agent.instances),
): Adapter {
  return (invocation, outcome) => {
    const abort = new AbortController()
    const call = new OneshotCall(agent, invocation, outcome, abort)
    const run = (): void => {
      const done = call.run(spawn, turns).catch((error) => outcome.broke(error))
      void done.finally(() => turnstile.leave())
    }
    const giveUp = turnstile.enter(run, () => outcome.fail(fault('overloaded', { agent: agent.name })))
    return () => {
      giveUp()
      abort.abort()
    }
  }
}

const LINGER_MS = 5_000
let lastId = 0

interface Spoken {
  readonly message: JsonObject
  readonly bytes: number
}

class OneshotCall {
  readonly #agent: StdioAgent
  readonly #invocation: Invocation
  readonly #outcome: Outcome
  readonly #abort: AbortController
  readonly #splitter: JsonObjectSplitter
  #bare: Spoken | undefined
  #answered = false

  constructor(agent: StdioAgent, invocation: Invocation, outcome: Outcome, abort: AbortController) {
    this.#agent = agent
    this.#invocation = invocation
    this.#outcome = outcome
    this.#abort = abort
    this.#splitter = new JsonObjectSplitter(agent.maxReplyBytes)
  }

  async run(spawn: SpawnOneshot, turns: Turns): Promise<void> {
    const { notification, client } = this.#invocation
    const process = spawn(this.#agent.pool, this.#abort.signal, client)
    const id = notification ? {} : { id: ++lastId }
    process.send(`${JSON.stringify({ ...agentMessage(this.#invocation), ...id })}\n`)
    this.#outcome.sent(process.worker)
    if (notification) this.#outcome.settle({ result: null }, { bytes: 0 })
    await this.#readAll(process, turns)
    const end = await process.ended
    if (!this.#answered && !notification) this.#conclude(end)
  }

  async #readAll(process: OneshotProcess, turns: Turns): Promise<void> {
    try {
      for await (const chunk of process.stdout) {
        for (const piece of piecesOf(chunk)) {
          await turns.over()
          this.#splitter.push(piece, (object) => this.#take(object, process))
        }
        if (this.#splitter.overflowed) return this.#abort.abort()
        await this.#outcome.room()
      }
    } catch (error) {
      // A pipe that breaks is told by the end of the process; anything else is ours.
      if (typeof (error as { code?: unknown }).code !== 'string') throw error
    }
  }

  #take(object: Buffer, process: OneshotProcess): void {
    const message = parse(object)
    if (message === undefined || this.#answered || typeof message['method'] === 'string') return
    const partial = readPartial(message)
    const answer = partial === undefined ? readAnswer(message) : undefined
    if (partial !== undefined) this.#outcome.partial(partial)
    else if (answer === undefined) this.#bare = { message, bytes: object.length }
    else this.#settle(answer, message, object.length, process)
  }

  #settle(answer: Answer, message: JsonObject, bytes: number, process: OneshotProcess): void {
    this.#answered = true
    const linger = setTimeout(() => this.#abort.abort(), LINGER_MS)
    void process.ended.then(() => clearTimeout(linger))
    this.#outcome.settle(answer, { bytes, raw: message })
  }

  /** The process ended without an answer in an envelope. */
  #conclude(end: OneshotEnd): void {
    if (end.code === 0 && this.#bare !== undefined && !this.#splitter.overflowed) {
      const { message, bytes } = this.#bare
      this.#outcome.settle({ result: message }, { bytes, raw: message })
    } else this.#outcome.fail(this.#failure(end), { stderr: end.stderrTail })
  }

  #failure(end: OneshotEnd): ErrorBody {
    const agent = this.#agent.name
    if (this.#splitter.overflowed) {
      return fault('agent_invalid_response', { agent, cause: `it is longer than ${this.#agent.maxReplyBytes} bytes` })
    }
    if (end.code !== 0) return exited(agent, end)
    return fault('agent_invalid_response', { agent, cause: 'its output holds no JSON object' })
  }
}

function exited(agent: string, end: OneshotEnd): ErrorBody {
  const how = end.startError ?? (end.signal === null ? `exit code ${end.code}` : `signal ${end.signal}`)
  return fault('worker_exited', { agent, how, exit_code: end.code, signal: end.signal })
}

function parse(object: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(object.toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
