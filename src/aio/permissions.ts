/**
 * Which calls a caller may make, and what it does not see of an agent's tools (contract 9.18 to 9.20).
 *
 * It knows no principal and no pattern: it is told by name. What is judged is what is sent, and what is hidden is hidden
 * before the trace is told, which its caller may read too.
 */
import { type Outcome, wholeOutcome } from './adapter.ts'
import { fault } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'
import { MCP_METHODS, TOOL_KEYS } from './mcp-translate.ts'
import { HELP } from './names.ts'
import type { Permissions } from './port.ts'

const LIST_TOOLS = 'tools.list'
const CALL_TOOL = 'tools.call'
/** Whoever may use an agent may ask what it has. */
const FREE: ReadonlySet<string> = new Set([HELP, ...MCP_METHODS.filter((method) => method.endsWith('.list'))])

interface Wanted {
  readonly agent: string
  readonly method: string
  readonly params: unknown
}

/** What of the agent the caller wants and may not have; undefined: it may. Without a name nobody knows what it is. */
export function forbiddenTool(permissions: Permissions, { agent, method, params }: Wanted): string | undefined {
  if (!permissions.areToolsJudged || FREE.has(method)) return undefined
  if (method !== CALL_TOOL) return permissions.mayUseTool(agent, method) ? undefined : method
  // A program may read either spelling.
  const names = TOOL_KEYS.map((key) => objectOr(params)[key]).filter((name) => name !== undefined)
  if (names.length === 0) return CALL_TOOL
  for (const name of names) {
    if (typeof name !== 'string') return CALL_TOOL
    if (!permissions.mayUseTool(agent, name)) return name
  }
  return undefined
}

export function allowedAgents<Agent>(
  permissions: Permissions | undefined,
  agents: ReadonlyMap<string, Agent>,
): ReadonlyMap<string, Agent> {
  if (permissions === undefined) return agents
  return new Map([...agents].filter(([name]) => permissions.mayUseAgent(name)))
}

/** The outcome as the caller may see it: of the answers that list tools only what it may use. */
export function hideTools(permissions: Permissions | undefined, wanted: Wanted, outcome: Outcome): Outcome {
  const { agent, method } = wanted
  if (!permissions?.areToolsJudged || (method !== HELP && method !== LIST_TOOLS)) return outcome
  const isShown = (tool: string): boolean => permissions.mayUseTool(agent, tool)
  const hide = method === HELP ? shownHelp : shownList
  return wholeOutcome(outcome, (answer, settlement) => {
    const result = 'result' in answer ? hide(answer.result, isShown) : undefined
    if ('error' in answer) outcome.settle(answer, settlement)
    else if (result === undefined) outcome.fail(fault('bad_list', { agent }))
    else outcome.settle({ result }, settlement)
  })
}

type IsShown = (tool: string) => boolean

function shownList(result: unknown, isShown: IsShown): JsonObject | undefined {
  if (!isObject(result) || !Array.isArray(result['tools'])) return undefined
  const { cacheScope } = result
  return {
    ...result,
    tools: namedAmong(result['tools'], isShown),
    ...(cacheScope === 'public' ? { cacheScope: 'private' } : {}),
  }
}

/** Methods that are judged by something else stay. */
function shownHelp(result: unknown, isShown: IsShown): JsonObject {
  const help = objectOr(result)
  const isOffered = (method: string): boolean => FREE.has(method) || method === CALL_TOOL || isShown(method)
  const lists = { tools: isShown, methods: isOffered, method_details: isOffered }
  const shown = Object.entries(lists).flatMap(([key, judge]) => {
    const list = help[key]
    return list === undefined ? [] : [[key, Array.isArray(list) ? namedAmong(list, judge) : []]]
  })
  return { ...help, ...Object.fromEntries(shown) }
}

/** What has no name is hidden. */
function namedAmong(list: readonly unknown[], isShown: IsShown): readonly unknown[] {
  return list.filter((item) => {
    const name = isObject(item) ? item['name'] : item
    return typeof name === 'string' && isShown(name)
  })
}
