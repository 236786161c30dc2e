/** Who is counted, owns and is recorded: a subject of a signed token for itself, anybody else by principal (contract 9.13). */
import type { Identity } from './identity.ts'

/** No name of a principal has a slash in it. */
export function callerOf({ principal, subject }: Pick<Identity, 'principal' | 'subject'>): string {
  return subject === undefined ? principal : `${principal}/${subject}`
}
