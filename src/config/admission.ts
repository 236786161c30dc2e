/** Whether anybody is asked who they are: what decides where a door may be opened (contract 9.1). Reads nothing. */
import type { AccessConfig } from './bus-config.ts'

/** There is a credential that somebody could show, so a door that others reach need not be open to everybody. */
export function asksForCredentials(access: AccessConfig | undefined): boolean {
  if (access === undefined) return false
  return access.file !== undefined || access.oauth !== undefined || access.certificates.length > 0
}
