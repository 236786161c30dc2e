/**
 * Runs the tool calls of an answer: shown, asked for, run, and answered to the model.
 *
 * Nothing runs without permission. Invariant: every call gets exactly one result, whatever happens to it.
 */
import { randomUUID } from 'node:crypto'
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { isRecord, reasonOf } from './errors.ts'
import type { ToolCallMessage, ToolMessage } from './history.ts'
import type { ToolResult } from './mcp-server.ts'
import { toLine } from './redact.ts'
import type { OfferedTool, Toolbox } from './toolbox.ts'

/** What the user decided. */
export type Permission = 'allowed' | 'refused' | 'cancelled'

export interface PermissionQuestion {
  readonly toolCallId: string
  readonly title: string
  readonly rawInput: unknown
}

/** The client, as far as tool calls need it. */
export interface ToolAudience {
  update(update: SessionUpdate): Promise<void>
  askPermission(question: PermissionQuestion, signal: AbortSignal): Promise<Permission>
}

/** Beyond this the model is told that the rest was cut. */
export const maxResultChars = 256 * 1024
const maxShownChars = 64 * 1024

export const refusedText = 'The user did not allow this call.'
export const cancelledText = 'The user cancelled the turn before this call was finished.'

/** The results in the order of the calls; after a cancel the rest are answered as cancelled. */
export async function runCalls(
  calls: readonly ToolCallMessage[],
  toolbox: Toolbox,
  audience: ToolAudience,
  cancel: AbortController,
): Promise<ToolMessage[]> {
  const results: ToolMessage[] = []
  for (const call of calls) {
    const text = cancel.signal.aborted ? cancelledText : await runCall(call, toolbox, audience, cancel)
    results.push({ role: 'tool', tool_call_id: call.id, content: clip(text, maxResultChars) })
  }
  return results
}

async function runCall(
  call: ToolCallMessage,
  toolbox: Toolbox,
  audience: ToolAudience,
  cancel: AbortController,
): Promise<string> {
  const offered = toolbox.find(call.function.name)
  const input = parseArguments(call.function.arguments)
  const isLong = call.function.arguments.length > maxShownChars
  const shown: PermissionQuestion = {
    toolCallId: randomUUID(),
    title:
      toLine(offered ? `${offered.server.name}: ${offered.tool.title}` : call.function.name, 200) || 'unnamed tool',
    rawInput: input && !isLong ? input : clip(call.function.arguments, maxShownChars),
  }
  await audience.update({ sessionUpdate: 'tool_call', ...shown, kind: 'other', status: 'pending' })
  const result = await decide(offered, input, shown, audience, cancel)
  await audience.update({
    sessionUpdate: 'tool_call_update',
    toolCallId: shown.toolCallId,
    status: result.failed ? 'failed' : 'completed',
    content: [{ type: 'content', content: { type: 'text', text: clip(result.text, maxShownChars) } }],
  })
  return result.text
}

async function decide(
  offered: OfferedTool | undefined,
  input: Record<string, unknown> | undefined,
  shown: PermissionQuestion,
  audience: ToolAudience,
  cancel: AbortController,
): Promise<ToolResult> {
  if (!offered) return failed('There is no tool of this name.')
  if (!input) return failed('The arguments are not a JSON object.')
  const permission = await audience.askPermission(shown, cancel.signal)
  // The client ends the turn by this answer, whether or not its cancel has come yet.
  if (permission === 'cancelled') cancel.abort()
  if (cancel.signal.aborted) return failed(cancelledText)
  if (permission === 'refused') return failed(refusedText)
  await audience.update({ sessionUpdate: 'tool_call_update', toolCallId: shown.toolCallId, status: 'in_progress' })
  return run(offered, input, cancel.signal)
}

async function run(offered: OfferedTool, input: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult> {
  try {
    return await offered.server.call(offered.tool.name, input, signal)
  } catch (error) {
    return failed(signal.aborted ? cancelledText : `The call failed: ${reasonOf(error, (text) => text)}`)
  }
}

/** Models write no arguments at all for a tool that takes none. */
function parseArguments(text: string): Record<string, unknown> | undefined {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

const failed = (text: string): ToolResult => ({ failed: true, text })

function clip(text: string, maxChars: number): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}\n[cut after ${maxChars} characters]` : text
}
