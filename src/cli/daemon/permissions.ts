/**
 * The rights of a principal as the gateway asks for them (contract 9.18, 9.19).
 *
 * The gateway reads a message as an object, in which of two members with the same key one is lost; whether a call names its
 * tool twice is seen here, on its bytes.
 */
import { TOOL_KEYS } from '../../aio/mcp-translate.ts'
import type { Permissions } from '../../aio/port.ts'
import { mayUsePool, mayUseTool, type Rights, type Role } from '../../kernel/rights.ts'
import { hasKey, memberOf, membersOf } from '../../wire/json-array.ts'

/** Who has the rights: what it is recorded as, or nobody in particular; and the pools and agents that there are. */
export interface Holder {
  readonly principal: string | undefined
  readonly names: () => readonly string[]
}

/** An observer sends nothing to an agent. */
export function permissionsOf(rights: Rights, holder: Holder): Permissions {
  return {
    areToolsJudged: rights.tools !== undefined,
    ...(holder.principal === undefined ? {} : { traceScope: TRACE_SCOPES[rights.role](rights, holder) }),
    mayUseAgent: (agent) => rights.role !== 'observer' && mayUsePool(rights, agent),
    mayRegister: (agent) => rights.role !== 'observer' && holder.principal !== undefined && mayUsePool(rights, agent),
    mayUseTool: (agent, tool) => mayUseTool(rights, agent, tool),
  }
}

/** A user sees what is all its own, an observer what is all of its pools (contract 9.6). */
const TRACE_SCOPES: Readonly<Record<Role, (rights: Rights, holder: Holder) => Readonly<Record<string, unknown>>>> = {
  user: (_rights, { principal }) => ({ only_caller: principal }),
  observer: (rights, { names }) => ({ only_agents: names().filter((name) => mayUsePool(rights, name)) }),
  admin: () => ({}),
}

/** `line` is a message that was proved to be JSON. */
export function namesToolTwice(line: Buffer): boolean {
  const params = memberOf(line, 0, line.length, 'params')
  if (params === undefined) return false
  const members = [...membersOf(line, params.start, params.end)]
  return TOOL_KEYS.some((key) => members.filter((member) => hasKey(line, member, key)).length > 1)
}
