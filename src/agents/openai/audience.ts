/**
 * The client of one session, seen from a turn: it is shown updates and asked for permission.
 *
 * Invariant: an answer that is not a clear yes is a no.
 */
import {
  type AgentContext,
  methods,
  type PermissionOption,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk'
import type { Permission, ToolAudience } from './tool-calls.ts'

const options: PermissionOption[] = [
  { optionId: 'allow', name: 'Allow once', kind: 'allow_once' },
  { optionId: 'reject', name: 'Reject once', kind: 'reject_once' },
]

export function toAudience(client: AgentContext, sessionId: string): ToolAudience {
  return {
    update: (update) => client.notify(methods.client.session.update, { sessionId, update }),
    askPermission: async (question, signal): Promise<Permission> => {
      const toolCall = { ...question, kind: 'other', status: 'pending' } as const
      const params: RequestPermissionRequest = { sessionId, toolCall, options }
      const asked = client.request(methods.client.session.requestPermission, params, {
        cancellationSignal: signal,
        stopWaitingOnCancel: true,
      })
      const outcome = await asked.then(
        (answer) => answer.outcome,
        () => undefined,
      )
      if (outcome?.outcome === 'cancelled') return 'cancelled'
      return outcome?.outcome === 'selected' && outcome.optionId === 'allow' ? 'allowed' : 'refused'
    },
  }
}
