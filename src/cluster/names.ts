/** How nodes are named, and the subjects on which they speak: each names its receiver and its sender (contract 14.1, 14.5, 14.9). */

export const NODE_NAME = /^[A-Za-z0-9_-]{1,64}$/
/** Whom everybody hears. */
export const ALL = 'all'

export function isNodeName(name: string): boolean {
  return NODE_NAME.test(name) && name !== ALL
}

export function subjectOf(cluster: string, to: string, from: string): string {
  return `bus.${cluster}.${to}.${from}`
}

/** Undefined: it is no subject of this cluster. */
export function readSubject(
  cluster: string,
  subject: string,
): { readonly to: string; readonly from: string } | undefined {
  const [bus, name, to, from, ...rest] = subject.split('.')
  if (bus !== 'bus' || name !== cluster || to === undefined || from === undefined || rest.length > 0) return undefined
  return isNodeName(from) ? { to, from } : undefined
}

/** Through which an agent of other nodes is reached: no pool is called so by people. */
const AGENT = '::'

export function agentPool(agent: string): string {
  return `${AGENT}${agent}`
}

/** Undefined: it is a pool like others. */
export function agentIn(pool: string): string | undefined {
  return pool.startsWith(AGENT) ? pool.slice(AGENT.length) : undefined
}

/** What a node asks of another in its own name is for no pool. */
export const NODE_DESK = AGENT

/** In the name of no pool. */
export const AT_NODE = '@'

/** `POOL@NODE`: the pool of that node. */
export function placeName(pool: string, node: string): string {
  return `${pool}${AT_NODE}${node}`
}
