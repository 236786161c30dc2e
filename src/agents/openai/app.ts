/**
 * Connects the agent to the methods of the protocol.
 *
 * It decides nothing. `session/prompt` stands first for a reason: the SDK offers a line to its handlers one after the
 * other, so a cancel that came in the same write as its prompt finds the turn begun.
 */
import { type AgentApp, agent, methods, RequestError } from '@agentclientprotocol/sdk'
import type { OpenAiAgent } from './agent.ts'
import { isRecord } from './errors.ts'
import { initializeResult, readVersion } from './initialize.ts'

export function toApp(openai: OpenAiAgent): AgentApp {
  const { agent: names } = methods
  const app = agent({ name: 'openai-agent' })
    .onRequest(names.session.prompt, ({ params, client, signal }) => openai.prompt(params, client, signal))
    .onNotification(names.session.cancel, ({ params }) => openai.cancel(params.sessionId))
    .onNotification('cancel', readSessionId, ({ params }) => openai.cancel(params))
    .onRequest('cancel', readSessionId, ({ params }) => cancelled(openai, params))
    .onRequest(names.initialize, readVersion, ({ params }) => initializeResult(params, openai.config, openai.version))
    .onRequest(names.authenticate, ignore, () => ({}))
    .onRequest(names.session.new, ({ params }) => openai.newSession(params))
    .onRequest(names.session.close, ({ params }) => openai.close(params.sessionId))
    .onRequest(names.session.setConfigOption, ({ params }) => openai.setConfigOption(params))
  if (openai.config.sessionDir === undefined) return app
  return app
    .onRequest(names.session.load, ({ params, client }) => openai.load(params, client))
    .onRequest(names.session.resume, ({ params }) => openai.resume(params))
    .onRequest(names.session.list, ({ params }) => openai.list(params))
    .onRequest(names.session.delete, ({ params }) => openai.delete(params.sessionId))
}

function cancelled(openai: OpenAiAgent, sessionId: string): Record<string, never> {
  openai.cancel(sessionId)
  return {}
}

/** There is nothing to authenticate for, whatever is sent. */
function ignore(): void {}

function readSessionId(params: unknown): string {
  if (isRecord(params) && typeof params['sessionId'] === 'string') return params['sessionId']
  throw RequestError.invalidParams({ sessionId: 'must be a string' })
}
