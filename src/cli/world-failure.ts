/** A failure of the world: the message says what to do, the exit code is 1 (contract 8.4). */
export class WorldFailure extends Error {
  override readonly name = 'WorldFailure'
  readonly exitCode = 1
}
