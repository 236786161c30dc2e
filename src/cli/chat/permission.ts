/**
 * Asks the user whether a tool may run.
 *
 * Invariant: where nobody can be asked, the answer is no.
 */
import type { PermissionOption, RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import type { Choose } from './chooser.ts'
import { clean } from './clean.ts'

const maxShownChars = 500

/** The user's choice, or `undefined` when the question itself was cancelled. */
export type AskUser = (title: string, options: readonly PermissionOption[]) => Promise<string | undefined>

export function askWith(choose: Choose): AskUser {
  return (title, options) =>
    choose(
      `Allow ${title}?`,
      options.map(({ optionId, name }) => ({ value: optionId, label: name })),
    )
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
