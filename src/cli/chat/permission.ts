/**
 * Asks the user whether a tool may run.
 *
 * Invariant: where nobody can be asked, the answer is no.
 */
import type { PermissionOption, RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import { isCancel, select } from '@clack/prompts'
import { clean } from './screen.ts'

const maxShownChars = 500

/** The user's choice, or `undefined` when the question itself was cancelled. */
export type AskUser = (title: string, options: readonly PermissionOption[]) => Promise<string | undefined>

export const askOnTerminal: AskUser = async (title, options) => {
  const choices = options.map((option) => ({ value: option.optionId, label: clean(option.name) }))
  const chosen = await select({ message: `Allow ${title}?`, options: choices })
  return isCancel(chosen) ? undefined : chosen
}

export async function answerPermission(
  request: RequestPermissionRequest,
  ask: AskUser | undefined,
): Promise<RequestPermissionResponse> {
  const { options, toolCall } = request
  const no = options.find((option) => option.kind.startsWith('reject'))?.optionId
  const chosen = ask ? await ask(describe(toolCall), options) : no
  return { outcome: chosen === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: chosen } }
}

function describe(toolCall: RequestPermissionRequest['toolCall']): string {
  const input = toolCall.rawInput === undefined ? '' : ` ${JSON.stringify(toolCall.rawInput)}`
  const text = clean(`${toolCall.title ?? 'this tool'}${input}`)
  return text.length > maxShownChars ? `${text.slice(0, maxShownChars)}…` : text
}
