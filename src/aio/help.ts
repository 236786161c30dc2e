/**
 * `agent::help`: written strictly in the seed's shape, read leniently from whatever agents say.
 *
 * `type` comes from the configuration alone. Where an agent has no help of its own the configuration answers. What else
 * an agent says about itself is kept beside the seed's four fields. Answers are cached until the worker goes, its lists
 * change, or the time is up.
 */
import { CODE } from '../wire/jsonrpc.ts'
import { type Adapter, type Cancel, type Invocation, type Outcome, wholeOutcome } from './adapter.ts'
import { MODALITIES, type NamedAgent } from './agent-spec.ts'
import { unwrap } from './answers.ts'
import { isObject, type JsonObject } from './json-object.ts'
import { HELP, joinName } from './names.ts'
import { describeProgram } from './programs.ts'

export const NO_MODULES = { resources: false, prompts: false, tools: false, sampling: false } as const
const CACHE_MS = 60_000
const SEED_KEYS: ReadonlySet<string> = new Set(['type', 'methods', 'modalities', 'mcp', 'method_details'])

/** The seed's descriptor of an agent from what it said; `said` may be anything. */
export function describeAgent(agent: NamedAgent, said: unknown): JsonObject {
  const own = readHelp(said) ?? (agent.type === 'program' ? describeProgram(agent) : {})
  const methods = Array.isArray(own['methods']) ? own['methods'] : defaultMethods(agent)
  const details = methods.filter(isObject)
  const extra = Object.entries(own).filter(([key]) => !SEED_KEYS.has(key))
  return {
    ...Object.fromEntries(extra),
    type: agent.type,
    methods: methods.flatMap(methodName),
    modalities: narrowed(agent) ?? readModalities(own['modalities']) ?? MODALITIES,
    mcp: { ...NO_MODULES, ...readModules(own['mcp']) },
    ...(details.length > 0 ? { method_details: details } : {}),
  }
}

/** The help object inside `result`, `output` or bare; undefined: it says nothing that help is about. */
function readHelp(said: unknown): JsonObject | undefined {
  if (!isObject(said)) return undefined
  const envelope = unwrap(said)
  const help = envelope['result'] ?? envelope['output'] ?? envelope
  if (!isObject(help)) return undefined
  return ['methods', 'modalities', 'mcp'].some((key) => help[key] !== undefined) ? help : undefined
}

function methodName(method: unknown): readonly string[] {
  const name = isObject(method) ? method['name'] : method
  return typeof name === 'string' ? [name] : []
}

/** All five is what the configuration says when it says nothing. */
function narrowed(agent: NamedAgent): readonly string[] | undefined {
  return agent.modalities !== undefined && agent.modalities.length < MODALITIES.length ? agent.modalities : undefined
}

function readModalities(modalities: unknown): readonly string[] | undefined {
  if (!Array.isArray(modalities)) return undefined
  return modalities.filter((modality) => typeof modality === 'string')
}

function readModules(modules: unknown): JsonObject {
  if (!isObject(modules)) return {}
  return Object.fromEntries(Object.keys(NO_MODULES).map((key) => [key, modules[key] === true]))
}

function defaultMethods(agent: NamedAgent): readonly string[] {
  return agent.type === 'mcp' ? [HELP] : ['input', HELP]
}

/** Asks for bare `help` first, as every agent in use knows it, then in the agent's own style, then the configuration. */
export function askHelp(agent: NamedAgent, adapter: Adapter, invocation: Invocation, outcome: Outcome): Cancel {
  const bare = { ...invocation, wireMethod: HELP, meta: agent.type === 'mcp' ? invocation.meta : undefined }
  // A program may have several names, and is asked by one of them.
  const spellings: Invocation[] = agent.type === 'program' ? [] : [bare]
  if (agent.type !== 'mcp' && agent.methodStyle === 'namespaced') {
    spellings.push({ ...invocation, wireMethod: joinName(agent.name, HELP) })
  }
  let cancel: Cancel = () => {}
  const ask = (): void => {
    const next = spellings.shift()
    if (next !== undefined) cancel = adapter({ ...next, notification: false }, listener)
    else outcome.settle({ result: describeAgent(agent, undefined) }, { bytes: 0 })
  }
  const listener = wholeOutcome(outcome, (answer, settlement) => {
    if ('error' in answer && answer.error.code === CODE.methodNotFound) return ask()
    if ('error' in answer) return outcome.settle(answer, settlement)
    outcome.settle({ result: describeAgent(agent, settlement.raw ?? answer) }, settlement)
  })
  ask()
  return () => cancel()
}

interface Cached {
  readonly help: unknown
  readonly worker: string | null
  readonly untilMs: number
}

/** One entry per agent, so it is as bounded as the configuration. */
export class HelpCache {
  readonly #entries = new Map<string, Cached>()

  get(agent: string, nowMs: number): unknown {
    const cached = this.#entries.get(agent)
    return cached !== undefined && cached.untilMs > nowMs ? cached.help : undefined
  }

  set(agent: string, help: unknown, worker: string | null, nowMs: number): void {
    this.#entries.set(agent, { help, worker, untilMs: nowMs + CACHE_MS })
  }

  forget(agent: string): void {
    this.#entries.delete(agent)
  }

  forgetWorker(worker: string): void {
    for (const [agent, cached] of this.#entries) {
      if (cached.worker === worker) this.#entries.delete(agent)
    }
  }

  clear(): void {
    this.#entries.clear()
  }
}
