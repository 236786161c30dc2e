/**
 * The Agent Client Protocol as a router sees it: version 1, stable and the unstable methods in use, and what version 2
 * adds. No message has a session id at the top; it is in params, or in the answers to new and fork.
 */
import type { DialectTable } from '../kernel/dialect-table.ts'
import { FIELD } from '../wire/fields.ts'

export const ACP: DialectTable = {
  protocol: 'acp',
  signs: [{ method: 'initialize' }],
  singleHandshakeFrom: 2,
  hasSessions: true,
  cuts: [FIELD.pool],
  sessionFields: [FIELD.sessionId, FIELD.paramsSessionId, FIELD.innerSessionId, FIELD.childSessionId],
  cancel: { method: '$/cancel_request', key: 'requestId' },
  closesAt: [
    ['agentCapabilities', 'sessionCapabilities', 'close'],
    ['capabilities', 'session', 'close'],
  ],
  lends: { list: 'mcpServers', type: 'acp' },
  departure: { cancelTurn: 'session/cancel', closeSession: 'session/close' },
  fromClient: {
    initialize: { opens: 'each' },
    'session/new': { session: 'announced' },
    'session/fork': { session: 'announced' },
    'session/load': { session: 'claimed' },
    'session/resume': { session: 'claimed' },
    'session/close': { session: 'ended', isOptional: true },
    'session/delete': { session: 'ended' },
    'session/list': { listsSessions: true },
    'session/prompt': { isTurn: true },
    '$/cancel_request': { cancels: FIELD.requestId },
  },
  fromWorker: {
    'session/update': { to: ['session'], adopts: FIELD.childSessionId },
    'session/request_permission': { to: ['session'], answerWhenGone: '{"outcome":{"outcome":"cancelled"}}' },
    'elicitation/create': { to: ['session', 'request'], answerWhenGone: '{"action":"cancel"}' },
    'elicitation/complete': { to: ['elicitation'] },
    '$/cancel_request': { to: ['question'] },
    'mcp/message': { to: ['session', 'server'] },
    'auth/status_update': { to: ['everyone'], isRemembered: true },
    '_auth/status_update': { to: ['everyone'], isRemembered: true },
  },
  otherFromWorker: { to: ['session', 'sole'] },
}
