/** A mistake in what was asked for: the message says what is wrong and what to do, the exit code is 2 (contract 8.4). */
export class UserMistake extends Error {
  override readonly name = 'UserMistake'
  readonly exitCode = 2
}
