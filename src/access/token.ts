/**
 * Tokens of the bus (contract 9.7): `sbus_`, 43 random characters that hold 256 bits, and 6 that are a checksum of what
 * precedes them, so that a token is known for one wherever it has leaked to, and a mistyped one is refused unasked.
 *
 * A token is made, looked at and forgotten here; what is kept of it anywhere is its digest. Nothing throws on any text.
 */
import { createHash, randomInt, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIX = 'sbus_'
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_CHARACTERS = 43
const CHECK_CHARACTERS = 6
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_CHARACTERS + CHECK_CHARACTERS}}$`)
/** How much of a digest tells people and logs which credential it was, without being of use to anybody. */
const SHORT_DIGITS = 8

export function makeToken(): string {
  const random = Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)])
  const body = PREFIX + random.join('')
  return body + checkOf(body)
}

/** Whether it has the form of a token and its checksum is right; whose it is, is another question. */
export function isToken(text: string): boolean {
  return FORM.test(text) && checkOf(text.slice(0, -CHECK_CHARACTERS)) === text.slice(-CHECK_CHARACTERS)
}

/** 64 hexadecimal digits. */
export function digestOf(credential: string): string {
  return createHash('sha256').update(credential).digest('hex')
}

/** What is shown of a credential: 8 digits of its digest. */
export function shortDigest(digest: string): string {
  return digest.slice(0, SHORT_DIGITS)
}

/** In a time that does not depend on where they differ. */
export function isSameDigest(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

/** CRC-32 in base 62, the digit of the highest value first. */
function checkOf(body: string): string {
  let rest = crc32(body)
  let check = ''
  for (let digit = 0; digit < CHECK_CHARACTERS; digit++) {
    check = ALPHABET[rest % ALPHABET.length] + check
    rest = Math.floor(rest / ALPHABET.length)
  }
  return check
}
