/** The lines that an aggregate writes in its own name. */
import { faultLine, faultOf, type Reason } from '../kernel/faults.ts'
import { CODE, errorLine } from '../wire/jsonrpc.ts'
import { borrowLineBuffer, handOut } from '../wire/line-buffers.ts'
import { META, type SpokenEra } from './eras.ts'

/** `members` are those of the result, spelled as JSON. */
export function resultOf(idSpelling: string, members: string): Buffer {
  return Buffer.from(`${headOf(idSpelling)}${members}}}\n`)
}

/** The same for a long result that begins with these bytes; the line is lent to `use`. */
export function lendResult(idSpelling: string, members: Buffer, more: string, use: (line: Buffer) => void): void {
  const head = Buffer.from(headOf(idSpelling))
  const tail = Buffer.from(`${more}}}\n`)
  const length = head.length + members.length + tail.length
  // Memory that is new for every long line costs more than the line.
  const buffer = borrowLineBuffer(length, length)
  head.copy(buffer)
  members.copy(buffer, head.length)
  tail.copy(buffer, head.length + members.length)
  handOut(buffer, () => use(buffer.subarray(0, length)))
}

function headOf(idSpelling: string): string {
  return `{"jsonrpc":"2.0","id":${idSpelling},"result":{`
}

/** A result that says nothing. */
export function emptyResult(idSpelling: string, era: SpokenEra): Buffer {
  return resultOf(idSpelling, era === 'modern' ? '"resultType":"complete"' : '')
}

export function refusal(idSpelling: string, reason: Reason, detail: Record<string, unknown>, era: SpokenEra): Buffer {
  // What is not there is a wrong parameter in the newer revision (contract 13.7).
  if (reason === 'unknown_resource' && era === 'modern')
    return errorLine(idSpelling, { ...faultOf(reason, detail), code: CODE.invalidParams })
  return faultLine(idSpelling, reason, detail)
}

/** Something that ought to have worked did not. */
export function ownMistake(idSpelling: string): Buffer {
  const message = 'The bus failed at this request; its log says why.'
  return errorLine(idSpelling, { code: CODE.internalError, message, data: { reason: 'internal_error' } })
}

const UNSUPPORTED_VERSION = -32022

export function unsupportedVersion(idSpelling: string, requested: unknown, supported: readonly string[]): Buffer {
  const message = 'Unsupported protocol version'
  return errorLine(idSpelling, { code: UNSUPPORTED_VERSION, message, data: { supported, requested } })
}

/** A notification, for a subscription of the stateless era where one is named. */
export function notice(method: string, params: Record<string, unknown>, subscription?: string): Buffer {
  const text = JSON.stringify(params)
  if (subscription === undefined) {
    const said = text === '{}' ? '' : `,"params":${text}`
    return Buffer.from(`{"jsonrpc":"2.0","method":${JSON.stringify(method)}${said}}\n`)
  }
  const meta = `"_meta":{${JSON.stringify(META.subscriptionId)}:${subscription}}`
  const body = text === '{}' ? `{${meta}}` : `${text.slice(0, -1)},${meta}}`
  return Buffer.from(`{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${body}}\n`)
}
