/**
 * Why a door did not open, as an error a person can act on, and nothing else.
 *
 * The message says what is wrong and what to do. `exitCode` is the program's: 2 when the user is to correct what was asked
 * for, 1 when the world is in the way (contract 8.4).
 */
export type DoorCode =
  | 'address_invalid'
  | 'path_invalid'
  | 'not_loopback'
  | 'name_unresolved'
  | 'port_in_use'
  | 'address_unavailable'
  | 'permission_denied'
  | 'directory_missing'
  | 'path_taken'
  | 'socket_live'
  | 'socket_locked'
  | 'listen_failed'

/** The world is in the way: a live socket, a port in use, a directory that is not there. */
export class DoorError extends Error {
  override readonly name: string = 'DoorError'
  readonly code: DoorCode
  readonly exitCode: 1 | 2 = 1

  constructor(code: DoorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** What was asked for cannot be meant, whatever the state of the world. */
export class AddressProblem extends DoorError {
  override readonly name = 'AddressProblem'
  override readonly exitCode = 2
}

/** The `code` of a system error (`EADDRINUSE`), or undefined for anything else that was thrown. */
export function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
