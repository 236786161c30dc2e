/**
 * The Model Context Protocol with the initialize handshake, 2024-11-05 to 2025-11-25, as a router sees it.
 *
 * The handshake belongs to the connection, so a worker that several clients share is greeted once, by the bus.
 */
import type { DialectTable } from '../kernel/dialect-table.ts'
import { FIELD } from '../wire/fields.ts'

const listChanged = { to: ['everyone'] } as const
/** Questions carry no address; only one client at the most can be meant. */
const asks = { to: ['task', 'sole'] } as const

export const MCP_LEGACY: DialectTable = {
  protocol: 'mcp',
  era: 'legacy',
  signs: [{ method: 'initialize', field: FIELD.protocolVersion, type: 'string' }],
  greeting: {
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', clientInfo: { name: 'stdio-bus', version: '0.1.0' } },
    offers: 'capabilities',
    confirms: 'notifications/initialized',
  },
  hasSessions: false,
  sessionFields: [],
  cuts: [FIELD.pool, FIELD.sessionId, FIELD.traceId],
  progressToken: FIELD.metaProgressToken,
  cancel: { method: 'notifications/cancelled', key: 'requestId' },
  words: {
    setLevel: 'logging/setLevel',
    subscribe: 'resources/subscribe',
    unsubscribe: 'resources/unsubscribe',
  },
  levels: ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'],
  tools: { call: 'tools/call', list: 'tools/list' },
  taskEnds: ['completed', 'failed', 'cancelled'],
  revisions: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'],
  batchRevisions: ['2025-03-26'],
  fromClient: {
    initialize: { opens: 'once' },
    'notifications/initialized': { confirms: true },
    'server/discover': { isUnknown: true, asksForDialect: true },
    ping: { local: 'pong' },
    'logging/setLevel': { local: 'level' },
    'resources/subscribe': { local: 'subscribe', isLongLived: true },
    'resources/unsubscribe': { local: 'unsubscribe' },
    'notifications/cancelled': { cancels: FIELD.requestId, isFinal: true },
    'notifications/progress': { answersToken: FIELD.progressToken },
    'notifications/roots/list_changed': { unlessShared: true },
    'tasks/get': { task: FIELD.taskId },
    'tasks/result': { task: FIELD.taskId, endsTask: true },
    'tasks/cancel': { task: FIELD.taskId, endsTask: true },
    'tasks/list': { unlessShared: true },
  },
  fromWorker: {
    ping: { to: [], local: 'pong' },
    'notifications/progress': { to: ['token'] },
    'notifications/message': { to: ['log'] },
    'notifications/cancelled': { to: ['question'], isFinal: true },
    'notifications/resources/updated': { to: ['subscribers'] },
    'notifications/tools/list_changed': listChanged,
    'notifications/prompts/list_changed': listChanged,
    'notifications/resources/list_changed': listChanged,
    'notifications/elicitation/complete': { to: ['elicitation'] },
    'notifications/tasks/status': { to: ['task'], tellsTask: true },
    'sampling/createMessage': { ...asks, needs: 'sampling' },
    'elicitation/create': { ...asks, needs: 'elicitation', answerWhenGone: '{"action":"cancel"}' },
    'roots/list': { ...asks, needs: 'roots' },
  },
  otherFromWorker: asks,
}
