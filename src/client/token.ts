/**
 * The token that this side proves itself with: from a file that nobody else may read, or as it is given.
 *
 * It is shown in no message, and nothing is guessed about it but that it is one word.
 */
import { readSecretFile, UnusableFile } from '../host/given-file.ts'

export const TOKEN_VARIABLE = 'STDIO_BUS_TOKEN'

/** Longer ones are not heard out before somebody is admitted (contract 9.3). */
const MAX_CHARACTERS = 12 * 1024
const WORD = /^[\x21-\x7e]+$/

export function isToken(text: string): boolean {
  return text.length <= MAX_CHARACTERS && WORD.test(text)
}

/** Read anew for every connection, because tokens are exchanged. Fails with UnusableFile. */
export function readTokenFile(path: string): string {
  const text = readSecretFile(path).trim()
  if (isToken(text)) return text
  throw new UnusableFile(path, 'holds no token: a token is one word, alone in its file')
}
