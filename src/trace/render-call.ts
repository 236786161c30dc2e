/** One call for the terminal, with everything that is kept of it. */
import { createColors } from 'picocolors'
import type { CallCaller } from './call.ts'
import { errorLine, nameOf } from './call-tree.ts'
import type { CallDocument } from './document.ts'
import { printable, showMs } from './printable.ts'
import type { RenderOptions } from './render-tree.ts'

export function renderCall(traceId: string, call: CallDocument, options: RenderOptions = {}): string {
  const paint = createColors(options.color ?? false)
  const status = call.status === 'error' ? paint.red(`error  ${printable(errorLine(call))}`) : call.status
  const facts: [name: string, value: string | undefined][] = [
    ['status', status],
    ['started', (options.showTime ?? String)(call.started_at)],
    ['took', call.duration_ms === null ? 'still open' : showMs(call.duration_ms)],
    ['parent', call.parent_id === null ? undefined : `${printable(traceId)}#${call.parent_id}`],
    ['caller', callerLine(call.caller)],
    ['request id', call.request_id === null ? 'none: a notification' : printable(JSON.stringify(call.request_id))],
    ['protocol', `${call.protocol} over ${call.type}`],
    ['native', call.native_method && printable(call.native_method)],
    ['worker', call.worker === null ? undefined : printable(call.worker)],
    ['bytes', `${call.bytes_in} in, ${call.bytes_out} out`],
    ['partials', call.partials > 0 ? `${call.partials}, first at ${call.first_partial_at}` : undefined],
    ['span', call.span_id],
    ['cut', call.truncated?.join(', ')],
    ['lost', call.lost?.join(', ')],
  ]
  const lines = facts
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${paint.dim(name.padEnd(12))}${value}`)
  const title = `${paint.bold(printable(`${traceId}#${call.id}`))}  ${printable(nameOf(call))}`
  const payloads = [
    ['input', call.input],
    ['output', call.output],
    ...(call.error?.data === undefined ? [] : [['error data', call.error.data]]),
  ].map(([name, value]) => `\n${paint.dim(String(name))}\n${showJson(value)}`)
  return `${[title, ...lines, ...payloads].join('\n')}\n`
}

function callerLine(caller: CallCaller | undefined): string | undefined {
  if (caller === undefined) return undefined
  const { principal, agent, client, name } = caller
  const who = [
    agent === undefined ? undefined : `agent ${agent}`,
    client === undefined ? undefined : `client ${client}`,
    name,
  ]
  return printable([principal, ...who.filter((part) => part !== undefined)].join(', '))
}

/** Line by line, because JSON escapes fewer characters than a terminal needs. */
function showJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => printable(line))
    .join('\n')
}
