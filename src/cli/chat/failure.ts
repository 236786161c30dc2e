/** A failure of the world on the way to the agent: the message says what to do, the exit code is 1 (contract 8.4). */
export class ChatFailure extends Error {
  override readonly name = 'ChatFailure'
  readonly exitCode = 1
}
