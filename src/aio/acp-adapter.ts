/**
 * Agents that speak ACP, called by name: `NAME::input` is a turn (contract 13.14, 13.15).
 *
 * The agent's message chunks are partials, the end of the turn is the answer. The agent's questions never reach the caller:
 * the policy of the configuration answers them, and the trace tells what it said.
 */
import { blocksOf, modalitiesOf, SpokenOutputs } from './acp-blocks.ts'
import { AgentRefusal } from './acp-peer.ts'
import { type AcpGuests, type Guest, runTurn } from './acp-turn.ts'
import type { Adapter, Invocation, Outcome } from './adapter.ts'
import type { AcpAgent } from './agent-spec.ts'
import { fault } from './faults.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import type { ErrorBody } from './port.ts'

const METHODS = ['input', 'help']
/** What ACP says where somebody must log in. */
const AUTH_REQUIRED = -32000

export function acpAdapter(agent: AcpAgent, guests: AcpGuests): Adapter {
  return (invocation, outcome) => {
    const { method, callerKey, client } = invocation
    if (!METHODS.includes(method)) {
      outcome.fail(fault('unknown_method', { agent: agent.name, method, methods: METHODS }))
      return () => {}
    }
    const call = new AcpCall(agent, guests.of(agent, callerKey, client), outcome)
    const run = method === 'help' ? call.describe() : call.run(invocation)
    run.catch((error) => call.failed(error))
    return () => call.cancel()
  }
}

class AcpCall {
  readonly #agent: AcpAgent
  readonly #guest: Guest
  readonly #outcome: Outcome
  readonly #abort = new AbortController()
  readonly #spoken = new SpokenOutputs()

  constructor(agent: AcpAgent, guest: Guest, outcome: Outcome) {
    this.#agent = agent
    this.#guest = guest
    this.#outcome = outcome
  }

  cancel(): void {
    this.#abort.abort()
  }

  async describe(): Promise<void> {
    this.#outcome.sent(null)
    const { prompt } = await this.#guest.peer.facts()
    const result = { methods: METHODS, modalities: modalitiesOf(prompt) }
    this.#outcome.settle({ result }, { bytes: 0, raw: { result } })
  }

  async run({ affinity, meta, params }: Invocation): Promise<void> {
    const blocks = blocksOf(objectOr(params)['inputs'] as readonly JsonObject[], await this.#takes())
    if ('fault' in blocks) return this.#outcome.fail(blocks.fault)
    if (this.#abort.signal.aborted) return
    const stopReason = await runTurn(this.#guest, {
      prompt: blocks,
      session: affinity,
      policy: this.#agent.permissions,
      meta,
      signal: this.#abort.signal,
      begun: (worker) => this.#outcome.sent(worker),
      spoke: (content) => this.#spoke(content),
      decided: (asked, output) => this.#outcome.child(decision(this.#agent, asked)).end(output),
    })
    this.#outcome.settle({ result: { outputs: this.#spoken.all, stopReason } }, { bytes: this.#spoken.bytes })
  }

  /** The time of an agent that has yet to introduce itself runs. */
  async #takes() {
    if (!this.#guest.peer.isIntroduced) this.#outcome.sent(null)
    return (await this.#guest.peer.facts()).prompt
  }

  #spoke(content: unknown): void {
    const { name, maxReplyBytes } = this.#agent
    const outputs = this.#spoken.add(content)
    if (this.#spoken.bytes > maxReplyBytes) {
      this.#outcome.fail(
        fault('agent_invalid_response', { agent: name, cause: `it is longer than ${maxReplyBytes} bytes` }),
      )
      this.cancel()
    } else if (outputs.length > 0) this.#outcome.partial(outputs)
  }

  failed(error: unknown): void {
    if (error instanceof AgentRefusal) this.#outcome.fail(refusalOf(this.#agent.name, error.body))
    else this.#outcome.broke(error)
  }
}

/** What was asked of the policy, as a step of the call. */
export function decision({ name, permissions }: Pick<AcpAgent, 'name' | 'permissions'>, asked: JsonObject) {
  const { toolCall, options } = asked
  const input = { toolCall, options, policy: permissions }
  return { agent: name, method: 'session/request_permission', protocol: 'acp', input } as const
}

/** An agent that wants a login is told apart; its other errors pass as they are, and those of the bus have a reason. */
export function refusalOf(agent: string, body: ErrorBody): ErrorBody {
  return body.code === AUTH_REQUIRED ? fault('agent_auth_required', { agent }) : body
}
