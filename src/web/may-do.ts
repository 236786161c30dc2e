/**
 * Who may do what somebody was refused, read off the refusal (contract 9.14): whoever asks for more scope is told of one that
 * would do. A refusal that names nothing is not understood, and nobody is said to do better.
 */
import { BUS_METHODS, isBusMethod, mayUsePool, mayUseTool, type Rights, type Role } from '../kernel/rights.ts'

export function mayDoWhat(detail: Readonly<Record<string, unknown>> = {}): (rights: Rights) => boolean {
  const { method, pool, tool } = detail
  if (typeof method === 'string' && isBusMethod(method)) {
    const roles: readonly Role[] = BUS_METHODS[method]
    return ({ role }) => roles.includes(role)
  }
  if (typeof pool !== 'string') return () => false
  return (rights) =>
    rights.role !== 'observer' &&
    mayUsePool(rights, pool) &&
    (typeof tool !== 'string' || mayUseTool(rights, pool, tool))
}
