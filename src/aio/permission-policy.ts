/**
 * What an agent called by name is allowed, without anybody being asked (contract 13.15): a policy and the options it offers
 * decide. Nothing is ever allowed for longer than once.
 */
import type { PermissionPolicy } from './agent-spec.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'

type Outcome = { readonly outcome: 'selected'; readonly optionId: string } | { readonly outcome: 'cancelled' }

/** Kinds of tools that change nothing. */
const READING: ReadonlySet<unknown> = new Set(['read', 'search'])

export function decidePermission(policy: PermissionPolicy, { toolCall, options }: JsonObject): Outcome {
  const isAllowed = policy === 'allow' || (policy === 'read' && READING.has(objectOr(toolCall)['kind']))
  const allowed = isAllowed ? optionOf(options, 'allow_once') : undefined
  const optionId = allowed ?? optionOf(options, 'reject_once')
  return optionId === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId }
}

function optionOf(options: unknown, kind: string): string | undefined {
  const found = Array.isArray(options) ? options.find((each) => isObject(each) && each['kind'] === kind) : undefined
  return typeof found?.['optionId'] === 'string' ? found['optionId'] : undefined
}
