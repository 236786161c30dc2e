/**
 * Takes the token of this program out of its environment, so that nothing it starts inherits it (contract 9.26).
 *
 * Invariant: once it has been taken, it is in this memory and nowhere else.
 */
import { isToken, TOKEN_VARIABLE } from '../client/token.ts'
import { UserMistake } from './user-mistake.ts'

let taken: string | undefined

/** The first thing that the program does. */
export function takeTokenVariable(environment: NodeJS.ProcessEnv = process.env): void {
  taken = environment[TOKEN_VARIABLE] || undefined
  delete environment[TOKEN_VARIABLE]
}

/** The token that was in the environment; undefined if there was none. */
export function tokenFromEnvironment(): string | undefined {
  if (taken !== undefined && !isToken(taken)) throw new UserMistake(`${TOKEN_VARIABLE} holds no token: one is a word`)
  return taken
}
