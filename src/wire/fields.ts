/**
 * Which fields of a message a router may look at, as paths; everything else in a line is payload.
 *
 * The envelope notes where each of these lies; it compares keys by value (`"\u0069d"` is `id`) and never looks into an
 * object that is not on a path, so nested look-alikes do not count (contract 4.2.2). A new reference field of a dialect
 * is one row here.
 */
const MCP = 'io.modelcontextprotocol'

const PATHS = {
  id: ['id'],
  method: ['method'],
  sessionId: ['sessionId'],
  pool: ['pool'],
  params: ['params'],
  result: ['result'],
  error: ['error'],
  paramsSessionId: ['params', 'sessionId'],
  // The first eight may not stand twice in a message; the order of this table is the order of the slots.
  name: ['params', 'name'],
  traceId: ['trace_id'],
  agentId: ['agentId'],
  partial: ['partial'],
  resultSessionId: ['result', 'sessionId'],
  paramsAgentId: ['params', 'agentId'],
  requestId: ['params', 'requestId'],
  progressToken: ['params', 'progressToken'],
  protocolVersion: ['params', 'protocolVersion'],
  uri: ['params', 'uri'],
  level: ['params', 'level'],
  taskId: ['params', 'taskId'],
  cursor: ['params', 'cursor'],
  serverId: ['params', 'serverId'],
  elicitationId: ['params', 'elicitationId'],
  requestState: ['params', 'requestState'],
  childSessionId: ['params', 'update', 'sessionId'],
  updateKind: ['params', 'update', 'sessionUpdate'],
  innerSessionId: ['params', 'params', 'sessionId'],
  meta: ['params', '_meta'],
  metaProgressToken: ['params', '_meta', 'progressToken'],
  metaAgentId: ['params', '_meta', 'stdio-bus/agentId'],
  metaProtocolVersion: ['params', '_meta', `${MCP}/protocolVersion`],
  metaLogLevel: ['params', '_meta', `${MCP}/logLevel`],
  metaSubscriptionId: ['params', '_meta', `${MCP}/subscriptionId`],
  metaTaskId: ['params', '_meta', `${MCP}/related-task`, 'taskId'],
  resultProtocolVersion: ['result', 'protocolVersion'],
  resultNextCursor: ['result', 'nextCursor'],
  resultTaskId: ['result', 'taskId'],
  resultInnerTaskId: ['result', 'task', 'taskId'],
  resultRequestState: ['result', 'requestState'],
  resultSubscriptionId: ['result', '_meta', `${MCP}/subscriptionId`],
  resultSessions: ['result', 'sessions'],
  errorCode: ['error', 'code'],
} as const satisfies Record<string, readonly string[]>

export type FieldName = keyof typeof PATHS
/** The slot in which the envelope notes a field. */
export type Field = number & { readonly __field: unique symbol }

export const FIELD_NAMES = Object.keys(PATHS) as readonly FieldName[]
export const FIELD = Object.fromEntries(FIELD_NAMES.map((name, slot) => [name, slot])) as unknown as Readonly<
  Record<FieldName, Field>
>

/** Slots below this must not be filled twice (contract 4.3: a routing field twice). */
export const ONCE_BELOW = FIELD.name

export interface FieldNode {
  readonly key: Buffer
  readonly slot: Field | -1
  /** Children by the length of their key: most keys of a message have no candidate at all. */
  readonly byLength: readonly (readonly FieldNode[] | undefined)[]
  readonly hasChildren: boolean
  /** The slots of everything below this node. */
  readonly below: readonly Field[]
}

type Draft = { key: string; slot: Field | -1; children: Map<string, Draft> }

function draftOf(key: string): Draft {
  return { key, slot: -1, children: new Map() }
}

function compile(draft: Draft): FieldNode {
  const byLength: FieldNode[][] = []
  const below: Field[] = []
  for (const child of draft.children.values()) {
    const node = compile(child)
    byLength[node.key.length] ??= []
    byLength[node.key.length]!.push(node)
    below.push(...node.below)
    if (node.slot !== -1) below.push(node.slot)
  }
  return { key: Buffer.from(draft.key), slot: draft.slot, byLength, hasChildren: draft.children.size > 0, below }
}

function buildTree(): FieldNode {
  const root = draftOf('')
  for (const name of FIELD_NAMES) {
    let at = root
    for (const key of PATHS[name]) {
      if (!at.children.has(key)) at.children.set(key, draftOf(key))
      at = at.children.get(key)!
    }
    at.slot = FIELD[name]
  }
  return compile(root)
}

export const FIELD_TREE: FieldNode = buildTree()
