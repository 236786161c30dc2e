/**
 * The Agent Client Protocol as a router sees it: version 1, stable and the unstable methods in use, and what version 2
 * adds. No message has a session id at the top; it is in params, or in the answers to new and fork.
 */
import type { DialectTable, KeepingWords } from '../kernel/dialect-table.ts'
import { FIELD } from '../wire/fields.ts'

const KEEPING: KeepingWords = {
  update: 'session/update',
  list: 'session/list',
  promptKey: 'prompt',
  modeKey: 'modeId',
  personSaid: 'user_message_chunk',
  personRepeated: ['user_message_chunk', 'user_message'],
  agentSaid: 'agent_message_chunk',
  sessionIs: 'session_info_update',
  modeIs: 'current_mode_update',
  optionsAre: 'config_option_update',
  states: [
    'available_commands_update',
    'current_mode_update',
    'config_option_update',
    'session_info_update',
    'usage_update',
    'plan',
    'state_update',
  ],
  fleeting: 'notice',
  cancelled: '{"stopReason":"cancelled"}',
  turnIs: { kind: 'state_update', idle: 'idle' },
  abilities: {
    load: [
      ['agentCapabilities', 'loadSession'],
      ['capabilities', 'session'],
    ],
    resume: [
      ['agentCapabilities', 'sessionCapabilities', 'resume'],
      ['capabilities', 'session'],
    ],
    list: [
      ['agentCapabilities', 'sessionCapabilities', 'list'],
      ['capabilities', 'session'],
    ],
  },
  adds: [
    { path: ['agentCapabilities', 'loadSession'], value: 'true', replaces: true },
    { path: ['agentCapabilities', 'sessionCapabilities', 'resume'], value: '{}' },
    { path: ['agentCapabilities', 'sessionCapabilities', 'list'], value: '{}' },
  ],
  offersAt: ['clientCapabilities', 'capabilities'],
  namesAt: ['clientInfo', 'info'],
  terminalPart: {
    type: 'terminal',
    key: 'terminalId',
    instead: '{"type":"content","content":{"type":"text","text":"(the terminal of a client that has gone)"}}',
  },
  replayFrom: { key: 'replayFrom', type: 'start' },
}

const TERMINAL = { to: ['session', 'sole'], needsAt: ['terminal'], terminal: 'named' } as const

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
  keeping: KEEPING,
  departure: { cancelTurn: 'session/cancel', closeSession: 'session/close' },
  fromClient: {
    initialize: { opens: 'each' },
    'session/new': { session: 'announced' },
    'session/fork': { session: 'announced' },
    'session/load': { session: 'claimed', replays: true },
    'session/resume': { session: 'claimed' },
    'session/close': { session: 'ended', isOptional: true },
    'session/delete': { session: 'ended', deletes: true },
    'session/list': { listsSessions: true },
    'session/prompt': { isTurn: true },
    'session/cancel': { stopsTurn: true },
    'session/set_mode': { sets: 'mode' },
    'session/set_config_option': { sets: 'options' },
    '$/cancel_request': { cancels: FIELD.requestId },
  },
  fromWorker: {
    'session/update': { to: ['session'], adopts: FIELD.childSessionId, isUpdate: true },
    'session/request_permission': { to: ['session'], answerWhenGone: '{"outcome":{"outcome":"cancelled"}}' },
    'elicitation/create': {
      to: ['session', 'request'],
      answerWhenGone: '{"action":"cancel"}',
      needsAt: ['elicitation'],
      needsWay: 'mode',
    },
    'fs/read_text_file': { to: ['session', 'sole'], needsAt: ['fs', 'readTextFile'] },
    'fs/write_text_file': { to: ['session', 'sole'], needsAt: ['fs', 'writeTextFile'] },
    'terminal/create': { to: ['session', 'sole'], needsAt: ['terminal'], terminal: 'made' },
    'terminal/output': TERMINAL,
    'terminal/wait_for_exit': TERMINAL,
    'terminal/kill': TERMINAL,
    'terminal/release': TERMINAL,
    'elicitation/complete': { to: ['elicitation'] },
    '$/cancel_request': { to: ['question'] },
    'mcp/message': { to: ['session', 'server'] },
    'auth/status_update': { to: ['everyone'], isRemembered: true },
    '_auth/status_update': { to: ['everyone'], isRemembered: true },
  },
  otherFromWorker: { to: ['session', 'sole'] },
}
