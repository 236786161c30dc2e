/**
 * Answers what an MCP server asks of a model during a call, with a turn of an ACP agent (contract 13.16).
 *
 * That a pool is named in the configuration is the consent. The agent is allowed nothing, each question has a session of
 * its own, and stands below its call in the trace. Bounded: questions of a call, and those of one worker at a time.
 */
import { decision, refusalOf } from './acp-adapter.ts'
import { blocksOf, SpokenOutputs } from './acp-blocks.ts'
import { AgentRefusal } from './acp-peer.ts'
import type { AcpPlace } from './acp-sessions.ts'
import { type AcpGuests, runTurn } from './acp-turn.ts'
import type { Invocation, OpenChild, Outcome } from './adapter.ts'
import { fault, isRefusal } from './faults.ts'
import type { Asked, ErrorBody, Reply } from './port.ts'
import { readSampling, type SamplingRequest, samplingResult } from './sampling-request.ts'
import { Turnstile } from './turnstile.ts'

export const SAMPLING = 'sampling/createMessage'
const MAX_PER_CALL = 8
const MAX_AT_ONCE = 4
const MAX_ANSWER_BYTES = 1_048_576
const META_KEY = 'stdio-bus/sampling'

type Answer = (reply: Reply) => void

/** What the calls of a gateway share. */
export class ModelDesk {
  readonly guests: AcpGuests
  /** Of workers that ask just now. */
  readonly #turnstiles = new Map<string, Turnstile>()

  constructor(guests: AcpGuests) {
    this.guests = guests
  }

  /** Calls `admitted` with the way out, or `refused`; what it returns gives up waiting. */
  enter(worker: string, admitted: (leave: () => void) => void, refused: () => void): () => void {
    const turnstile = this.#turnstiles.get(worker) ?? new Turnstile(MAX_AT_ONCE)
    this.#turnstiles.set(worker, turnstile)
    const leave = (): void => {
      turnstile.leave()
      if (turnstile.isEmpty) this.#turnstiles.delete(worker)
    }
    return turnstile.enter(() => admitted(leave), refused)
  }
}

/** The questions of one call. */
export class ServedSampling {
  readonly #desk: ModelDesk
  readonly #place: AcpPlace
  readonly #invocation: Invocation
  readonly #outcome: Outcome
  #count = 0

  constructor(desk: ModelDesk, place: AcpPlace, invocation: Invocation, outcome: Outcome) {
    this.#desk = desk
    this.#place = place
    this.#invocation = invocation
    this.#outcome = outcome
  }

  /** Undefined: it is something else that is asked. `worker`: who asks. */
  answer({ method, params }: Asked, worker: string, answer: Answer): (() => void) | undefined {
    if (method !== SAMPLING) return undefined
    // What is beyond the limit stands in the trace once.
    if (++this.#count > MAX_PER_CALL + 1) {
      answer({ error: fault('sampling_limit', { limit: MAX_PER_CALL }) })
      return () => {}
    }
    const child = this.#outcome.child({ agent: this.#place.name, method, protocol: 'acp', input: params })
    const refuse = (error: ErrorBody): (() => void) => {
      child.end(null, error)
      answer({ error })
      return () => {}
    }
    if (this.#count > MAX_PER_CALL) return refuse(fault('sampling_limit', { limit: MAX_PER_CALL }))
    const request = readSampling(params)
    if (isRefusal(request)) return refuse(request.fault)
    if (child.isTooDeep) return refuse(fault('too_deep', { limit: 32 }))
    const abort = new AbortController()
    const stopWaiting = this.#desk.enter(
      worker,
      (leave) => this.#run(request, child, answer, abort.signal).finally(leave),
      () => refuse(fault('overloaded', { agent: this.#place.name })),
    )
    return () => {
      stopWaiting()
      child.giveUp(fault('cancelled'))
      abort.abort()
    }
  }

  async #run(request: SamplingRequest, child: OpenChild, answer: Answer, signal: AbortSignal): Promise<void> {
    const end = (reply: Reply): void => {
      if (signal.aborted) return
      child.end('result' in reply ? reply.result : null, 'error' in reply ? reply.error : undefined)
      answer(reply)
    }
    try {
      end(await this.#turn(request, child, signal))
    } catch (error) {
      if (error instanceof AgentRefusal) return end({ error: refusalOf(this.#place.name, error.body) })
      end({ error: fault('internal_error') })
      this.#outcome.broke(error)
    }
  }

  async #turn({ inputs, wishes }: SamplingRequest, child: OpenChild, signal: AbortSignal): Promise<Reply> {
    const { callerKey, client } = this.#invocation
    const { name } = this.#place
    const guest = this.#desk.guests.of(this.#place, callerKey, client)
    const blocks = blocksOf(inputs, (await guest.peer.facts()).prompt)
    if (isRefusal(blocks)) return { error: blocks.fault }
    const spoken = new SpokenOutputs()
    const tooLong = new AbortController()
    const stopReason = await runTurn(guest, {
      prompt: blocks,
      session: undefined,
      policy: 'deny',
      meta: { ...child.meta, [META_KEY]: wishes },
      signal: AbortSignal.any([signal, tooLong.signal]),
      begun: (worker) => child.sent(worker),
      spoke: (content) => {
        spoken.add(content)
        if (spoken.bytes > MAX_ANSWER_BYTES) tooLong.abort()
      },
      decided: (asked, output) => child.child(decision({ name, permissions: 'deny' }, asked)).end(output),
    })
    if (tooLong.signal.aborted)
      return {
        error: fault('agent_invalid_response', { agent: name, cause: `it is longer than ${MAX_ANSWER_BYTES} bytes` }),
      }
    return { result: samplingResult(name, spoken.text, stopReason) }
  }
}
