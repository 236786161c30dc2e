/**
 * The two eras of MCP side by side: what a message of one needs to be one of the other (contract 13.3).
 *
 * Only the bus's part of it is touched: keys of `_meta` that the stateless era puts into every request, and the few
 * members that it puts into every result. All else stays, byte for byte.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { cutMembers } from '../wire/member-edit.ts'
import { type Edit, insertInto, insertMember } from '../wire/splice.ts'

/** With the initialize handshake, or with `_meta` in every request. */
export type SpokenEra = 'legacy' | 'modern'

const PREFIX = 'io.modelcontextprotocol/'
export const META = {
  protocolVersion: `${PREFIX}protocolVersion`,
  clientCapabilities: `${PREFIX}clientCapabilities`,
  clientInfo: `${PREFIX}clientInfo`,
  logLevel: `${PREFIX}logLevel`,
  serverInfo: `${PREFIX}serverInfo`,
  subscriptionId: `${PREFIX}subscriptionId`,
} as const

export const MODERN_REVISION = '2026-07-28'
/** Newest last. */
export const LEGACY_REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
export const NEWEST_LEGACY = '2025-11-25'
/** The revision in which several messages may stand in one array. */
export const BATCH_REVISION = '2025-03-26'

const REQUEST_KEYS = [META.protocolVersion, META.clientCapabilities, META.clientInfo, META.logLevel]
const RESULT_KEYS = ['resultType', 'ttlMs', 'cacheScope']
/** Results that say how long they may be kept. */
const KEPT_RESULTS: ReadonlySet<string> = new Set(['resources/read'])
const OPEN_OBJECT = 0x7b

/** The era of a message of a client. */
export function eraOf(line: Envelope): SpokenEra {
  return line.has(FIELD.metaProtocolVersion) || line.text(FIELD.method) === 'server/discover' ? 'modern' : 'legacy'
}

/** What a request of a stateless client loses on its way to a member with a handshake. */
export function cutRequestMeta(line: Envelope): Edit[] {
  if (!line.has(FIELD.meta)) return []
  return cutMembers(line.bytes, { start: line.startOf(FIELD.meta), end: line.endOf(FIELD.meta) }, REQUEST_KEYS)
}

/** What a request of a client with a handshake gets on its way to a stateless member; `meta` is members of JSON. */
export function addRequestMeta(line: Envelope, meta: string): Edit {
  if (!line.has(FIELD.params)) return insertInto(line.bytes, openOf(line), `"params":{"_meta":{${meta}}}`)
  if (line.has(FIELD.meta) && line.bytes[line.startOf(FIELD.meta)] === OPEN_OBJECT)
    return insertMember(line, FIELD.meta, meta)
  return insertMember(line, FIELD.params, `"_meta":{${meta}}`)
}

function openOf({ bytes, start }: Envelope): number {
  return bytes.indexOf(OPEN_OBJECT, start)
}

/** A result of a stateless member, for a client with a handshake. */
export function cutResultMembers(line: Envelope): Edit[] {
  return cutMembers(line.bytes, { start: line.startOf(FIELD.result), end: line.endOf(FIELD.result) }, RESULT_KEYS)
}

/** A result of a member with a handshake, for a stateless client. */
export function addResultMembers(line: Envelope, method: string): Edit[] {
  if (line.bytes[line.startOf(FIELD.result)] !== OPEN_OBJECT) return []
  return [insertMember(line, FIELD.result, resultMembers(method))]
}

export function resultMembers(method: string): string {
  return KEPT_RESULTS.has(method) ? `"resultType":"complete",${UNKEPT}` : '"resultType":"complete"'
}

/** What is not to be kept by anybody. */
export const UNKEPT = '"ttlMs":0,"cacheScope":"private"'
