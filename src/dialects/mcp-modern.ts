/**
 * The Model Context Protocol without a handshake, 2026-07-28, as a router sees it: every request says in `_meta` what it
 * speaks, the server asks nothing, and what it sends belongs to a request or to a subscription.
 */
import type { DialectTable } from '../kernel/dialect-table.ts'
import { FIELD } from '../wire/fields.ts'

const subscribed = { to: ['subscription'] } as const

export const MCP_MODERN: DialectTable = {
  protocol: 'mcp',
  era: 'modern',
  signs: [{ method: 'server/discover' }, { field: FIELD.metaProtocolVersion }],
  probe: {
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
    proof: 'supportedVersions',
    codes: [-32020, -32021, -32022],
  },
  asksForLogs: true,
  tools: { call: 'tools/call', list: 'tools/list' },
  taskEnds: ['completed', 'failed', 'cancelled'],
  hasSessions: false,
  sessionFields: [],
  cuts: [FIELD.pool, FIELD.sessionId, FIELD.traceId],
  progressToken: FIELD.metaProgressToken,
  cancel: { method: 'notifications/cancelled', key: 'requestId' },
  fromClient: {
    'server/discover': { asksForDialect: true },
    'subscriptions/listen': { isLongLived: true },
    'notifications/cancelled': { cancels: FIELD.requestId, isFinal: true },
    'tasks/get': { task: FIELD.taskId },
    'tasks/update': { task: FIELD.taskId },
    'tasks/cancel': { task: FIELD.taskId, endsTask: true },
    ping: { isUnknown: true },
    initialize: { isUnknown: true },
  },
  fromWorker: {
    'notifications/progress': { to: ['token'] },
    'notifications/message': { to: ['log'] },
    'notifications/cancelled': { to: ['request'], isFinal: true },
    'notifications/subscriptions/acknowledged': subscribed,
    'notifications/resources/updated': subscribed,
    'notifications/tools/list_changed': subscribed,
    'notifications/prompts/list_changed': subscribed,
    'notifications/resources/list_changed': subscribed,
    'notifications/tasks': { to: ['subscription', 'task'], tellsTask: true },
  },
  otherFromWorker: { to: ['subscription', 'task'] },
}
