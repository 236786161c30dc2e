/**
 * What ends a chat: a failure of the world on the way to the agent, or a pool that the bus does not have.
 */
import { BusRefused } from '../../client/errors.ts'
import { printable } from '../../wire/printable.ts'
import { UserMistake } from '../user-mistake.ts'

/** What is gone with a failure: the session, or the connection and everything on it. */
export type Lost = 'session' | 'connection'

/** The message says what to do, the exit code is 1 (contract 8.4). */
export class ChatFailure extends Error {
  override readonly name = 'ChatFailure'
  readonly exitCode = 1
  readonly lost: Lost | undefined
  /** The agent never saw what was asked, so it may be asked again. */
  readonly isUnseen: boolean

  constructor(message: string, options: ErrorOptions & { readonly lost?: Lost; readonly isUnseen?: boolean } = {}) {
    super(message, options)
    this.lost = options.lost
    this.isUnseen = options.isUnseen ?? false
  }
}

/** What is behind the agent cannot be reached or fails; the agent itself goes on. */
export class EndpointFailure extends ChatFailure {}

/** A refusal over the choice of the pool, as the mistake that it is; undefined for every other error. */
export function poolMistake(error: unknown): UserMistake | undefined {
  const { reason, pool, pools } = dataOf(error instanceof BusRefused ? error.answer : error)
  if (reason !== 'unknown_pool' && reason !== 'pool_required') return undefined
  const names = Array.isArray(pools) ? pools.map((each) => printable(String(each))) : []
  const found = reason === 'unknown_pool' ? named(pool) : 'the bus has several pools and none was named'
  const advice = names.length === 0 ? 'it has none for you' : `ask one of them with --pool: ${names.join(', ')}`
  return new UserMistake(`${found}; ${advice}`, { cause: error })
}

function named(pool: unknown): string {
  return typeof pool === 'string'
    ? `the bus has no pool ${JSON.stringify(printable(pool))}`
    : 'the bus has no such pool'
}

function dataOf(error: unknown): Readonly<Record<string, unknown>> {
  const data = typeof error === 'object' && error !== null && 'data' in error ? error.data : undefined
  return typeof data === 'object' && data !== null ? (data as Record<string, unknown>) : {}
}
