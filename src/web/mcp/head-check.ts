/**
 * What the head of a stateless request must say of its body (contract 10.6, 10.11), so that whoever stands between can route by the
 * head alone. Pure. Values are compared as they are, letters and all; only white space around a value does not count.
 */
import type { Envelope } from '../../wire/envelope.ts'
import { FIELD, type Field } from '../../wire/fields.ts'
import { memberOf } from '../../wire/json-array.ts'
import type { Refusal } from '../web-request.ts'
import { STATELESS } from './revisions.ts'

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** Which member of `params` names what is meant, by method. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

export interface Head {
  readonly version: string | undefined
  readonly method: string | undefined
  readonly name: string | undefined
}

/** Why a request of the stateless era is refused; undefined: it may go on. */
export function problemOfHead(head: Head, line: Envelope): Refusal | undefined {
  if (head.version === undefined) return mismatch('MCP-Protocol-Version')
  const version = line.text(FIELD.metaProtocolVersion)
  if (version === undefined || !hasCapabilities(line)) return { reason: 'meta_required' }
  if (version !== head.version) return mismatch('MCP-Protocol-Version')
  if (version !== STATELESS)
    return { reason: 'unknown_version', detail: { supported: [STATELESS], requested: version } }
  const method = line.text(FIELD.method)!
  if (head.method?.trim() !== method) return mismatch('Mcp-Method')
  const key = Object.hasOwn(NAMED_BY, method) ? NAMED_BY[method] : undefined
  if (key === undefined) return undefined
  const name = memberText(line, FIELD.params, key)
  return decodeName(head.name) === name ? undefined : mismatch('Mcp-Name')
}

function mismatch(header: string): Refusal {
  return { reason: 'header_mismatch', detail: { header } }
}

function hasCapabilities(line: Envelope): boolean {
  if (!line.has(FIELD.meta)) return false
  return memberOf(line.bytes, line.startOf(FIELD.meta), line.endOf(FIELD.meta), CAPABILITIES) !== undefined
}

/** The text of a member of the object that a field holds; undefined: there is none, or it is no text. */
function memberText(line: Envelope, field: Field, key: string): string | undefined {
  if (!line.has(field)) return undefined
  const span = memberOf(line.bytes, line.startOf(field), line.endOf(field), key)
  const value: unknown = span === undefined ? undefined : JSON.parse(line.bytes.utf8Slice(span.start, span.end))
  return typeof value === 'string' ? value : undefined
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

/** What a head cannot carry as it is comes as base64 of its UTF-8. */
export function decodeName(value: string | undefined): string | undefined {
  const trimmed = value?.trim()
  const encoded = trimmed === undefined ? undefined : ENCODED.exec(trimmed)?.[1]
  if (encoded === undefined) return trimmed
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '') ? bytes.toString('utf8') : undefined
}
