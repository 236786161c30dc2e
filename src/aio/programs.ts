/**
 * Agents that are programs at the other end of a connection: they register, and calls come to them there (contract 13.18).
 *
 * A name is its program's until that takes it back or goes; what is open then is answered with `agent_gone`. Bounded: names
 * of one connection, and all together. Answers are told apart by ids of the bus's own.
 */
import { type Adapter, agentMessage, type Outcome } from './adapter.ts'
import { AGENT_DEFAULTS, MODALITIES, type Modality, type ProgramAgent } from './agent-spec.ts'
import { type Answer, readAnswer, readPartial } from './answers.ts'
import { fault } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'
import { BUS, isAgentName } from './names.ts'
import { callerKey } from './open-calls.ts'
import type { Caller, GatewayPort } from './port.ts'
import { byteLength } from './stdio-adapter.ts'

const MAX_PER_CONNECTION = 16
const MAX_PROGRAMS = 1_000
const MAX_TIMEOUT_MS = 2 ** 31 - 1
const MAX_METHODS = 256

interface Program {
  readonly agent: ProgramAgent
  readonly caller: Caller
  readonly adapter: Adapter
}

interface OpenExchange {
  readonly program: Program
  /** `TRACE#ID` of the call. */
  readonly call: unknown
  readonly outcome: Outcome
}

export class Programs {
  readonly #port: GatewayPort
  readonly #byName = new Map<string, Program>()
  readonly #open = new Map<string, OpenExchange>()
  readonly #epoch: string
  #lastId = 0

  constructor(port: GatewayPort) {
    this.#port = port
    this.#epoch = port.nowMs().toString(36)
  }

  get agents(): ReadonlyMap<string, ProgramAgent> {
    return new Map([...this.#byName].map(([name, { agent }]) => [name, agent]))
  }

  find(name: string): ProgramAgent | undefined {
    return this.#byName.get(name)?.agent
  }

  adapterOf(name: string): Adapter | undefined {
    return this.#byName.get(name)?.adapter
  }

  /** The name by which the connection is an agent, if it is one. */
  nameOf(caller: Caller): string | undefined {
    return this.#of(caller)[0]?.agent.name
  }

  /** The name by which the connection has this call in hand, if it has: what it calls for that, it calls as this agent. */
  nameServing(caller: Caller, call: string): string | undefined {
    for (const open of this.#open.values())
      if (open.call === call && this.#isOf(open.program, caller)) return open.program.agent.name
    return undefined
  }

  register(caller: Caller, params: unknown, isTaken: (name: string) => boolean): Answer {
    const { name } = objectOr(params)
    if (typeof name !== 'string' || !isAgentName(name) || name === BUS) return { error: fault('bad_name', { name }) }
    const refusal = this.#refusalOf(caller, name, isTaken)
    if (refusal !== undefined) return { error: refusal }
    const agent = readProgram(name, objectOr(params))
    if ('error' in agent) return agent
    const program: Program = { agent, caller, adapter: (invocation, outcome) => this.#call(name, invocation, outcome) }
    if (this.#of(caller).length === 0) this.#port.serve?.(caller, true)
    this.#byName.set(name, program)
    return { result: { name } }
  }

  #refusalOf(caller: Caller, name: string, isTaken: (name: string) => boolean) {
    const isMine = this.#isOf(this.#byName.get(name), caller)
    const isAnonymous = caller.kind === 'client' && caller.origin?.principal === 'anonymous'
    if (caller.kind !== 'client' || isAnonymous || caller.permissions?.mayRegister?.(name) === false)
      return fault('not_allowed', { agent: name })
    if (isTaken(name) || (this.#byName.has(name) && !isMine)) return fault('name_taken', { name })
    if (isMine) return undefined
    if (this.#of(caller).length >= MAX_PER_CONNECTION) return fault('too_many_agents', { limit: MAX_PER_CONNECTION })
    return this.#byName.size >= MAX_PROGRAMS ? fault('too_many_agents', { limit: MAX_PROGRAMS }) : undefined
  }

  unregister(caller: Caller, params: unknown): Answer {
    const { name } = objectOr(params)
    const program = this.#byName.get(name as string)
    if (!this.#isOf(program, caller)) return { error: fault('unknown_agent', { agent: name, known: [] }) }
    this.#end(program!)
    return { result: { name } }
  }

  /** The connection has gone, or a name belongs to somebody else now. */
  forget(caller: Caller): void {
    for (const program of this.#of(caller)) this.#end(program)
  }

  forgetNamed(isTaken: (name: string) => boolean): void {
    for (const program of [...this.#byName.values()]) if (isTaken(program.agent.name)) this.#end(program)
  }

  /** A program says something to a call; false: to none that it has. */
  answered(caller: Caller, message: JsonObject): boolean {
    const id = message['id'] as string
    const open = this.#open.get(id)
    if (open === undefined || !this.#isOf(open.program, caller)) return false
    const partial = readPartial(message)
    if (partial !== undefined) {
      open.outcome.partial(partial)
      return true
    }
    this.#open.delete(id)
    const answer = readAnswer(message)
    const { name } = open.program.agent
    if (answer !== undefined) open.outcome.settle(answer, { bytes: byteLength(message), raw: message })
    else open.outcome.fail(fault('agent_invalid_response', { agent: name, cause: 'it has neither result nor error' }))
    return true
  }

  #call(name: string, invocation: Parameters<Adapter>[0], outcome: Outcome): () => void {
    const program = this.#byName.get(name)
    if (program === undefined) {
      outcome.fail(fault('agent_gone', { agent: name }))
      return () => {}
    }
    if (this.#port.room?.(program.caller) !== undefined) {
      outcome.fail(fault('overloaded', { agent: name }))
      return () => {}
    }
    const message = agentMessage(invocation)
    if (invocation.notification) {
      this.#port.reply(program.caller, message)
      outcome.settle({ result: null }, { bytes: 0 })
      return () => {}
    }
    // No id of a bus before this one: programs may still answer what that one asked.
    const id = `call-${this.#epoch}-${++this.#lastId}`
    this.#open.set(id, { program, call: invocation.meta?.['stdio-bus/call_id'], outcome })
    outcome.sent(null)
    this.#port.reply(program.caller, { ...message, id })
    return () => {
      if (!this.#open.delete(id)) return
      const params = { requestId: id }
      this.#port.reply(program.caller, { jsonrpc: '2.0', method: 'notifications/cancelled', params })
    }
  }

  #end(program: Program): void {
    const { name } = program.agent
    if (this.#byName.get(name) === program) this.#byName.delete(name)
    if (this.#of(program.caller).length === 0) this.#port.serve?.(program.caller, false)
    for (const [id, open] of this.#open) {
      if (open.program !== program) continue
      this.#open.delete(id)
      open.outcome.fail(fault('agent_gone', { agent: name }))
    }
  }

  #of(caller: Caller): readonly Program[] {
    return [...this.#byName.values()].filter((program) => this.#isOf(program, caller))
  }

  #isOf(program: Program | undefined, caller: Caller): boolean {
    return program !== undefined && callerKey(program.caller) === callerKey(caller)
  }
}

function readProgram(name: string, params: JsonObject): ProgramAgent | { error: ReturnType<typeof fault> } {
  const { methods, modalities, description, timeout_ms: timeoutMs = AGENT_DEFAULTS.timeoutMs } = params
  const wrong = (param: string, expected: string) => ({ error: fault('invalid_param', { param, expected }) })
  if (methods !== undefined && !isListOf(methods, isShortText)) return wrong('methods', 'a list of names')
  if (modalities !== undefined && !isListOf(modalities, isModality)) return wrong('modalities', 'a list of modalities')
  if (description !== undefined && !isShortText(description)) return wrong('description', 'a text')
  if (!Number.isSafeInteger(timeoutMs) || (timeoutMs as number) < 1 || (timeoutMs as number) > MAX_TIMEOUT_MS)
    return wrong('timeout_ms', 'a whole number of milliseconds')
  return {
    ...AGENT_DEFAULTS,
    type: 'program',
    name,
    timeoutMs: timeoutMs as number,
    ...(methods === undefined ? {} : { methods: methods as string[] }),
    ...(modalities === undefined ? {} : { modalities: modalities as Modality[] }),
    ...(description === undefined ? {} : { description: description as string }),
  }
}

const MAX_DESCRIPTION = 4_096

function isShortText(value: unknown): boolean {
  return typeof value === 'string' && value.length <= MAX_DESCRIPTION
}

function isModality(value: unknown): boolean {
  return (MODALITIES as readonly unknown[]).includes(value)
}

function isListOf(value: unknown, isOne: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length <= MAX_METHODS && value.every(isOne)
}

/** What is said of a program by itself, where it has no help. */
export function describeProgram({ methods, description }: ProgramAgent): JsonObject {
  return {
    ...(methods === undefined ? {} : { methods: [...new Set([...methods, 'help'])] }),
    ...(description === undefined ? {} : { description }),
  }
}

export function isAnswerLine(message: unknown): message is JsonObject {
  return isObject(message) && message['method'] === undefined
}
