/** The revisions of MCP that this door knows, and what each allows. */
export const STATELESS = '2026-07-28'
export const HANDSHAKE_REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
export const REVISIONS: readonly string[] = [...HANDSHAKE_REVISIONS, STATELESS]

/** Messages in one array were allowed in one revision only (contract 10.12). */
export function allowsArrays(revision: string): boolean {
  return revision === '2025-03-26'
}

/** A stream begins with an empty event that tells where it begins; clients of older revisions break on it (contract 10.10). */
export function allowsEmptyEvents(revision: string): boolean {
  return revision === '2025-11-25'
}
