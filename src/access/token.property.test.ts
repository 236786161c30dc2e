import fc from 'fast-check'
import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { digestOf, isSameDigest, isToken, makeToken, shortDigest } from './token.ts'

/** The same sum, bit by bit, by its definition. */
function crc32(text: string): number {
  let sum = 0xffffffff
  for (const byte of Buffer.from(text)) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1
  }
  return (sum ^ 0xffffffff) >>> 0
}

const DIGITS = [...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz']
const numberOf = (text: string): number => [...text].reduce((sum, digit) => sum * 62 + DIGITS.indexOf(digit), 0)
const made = fc.constant(null).map(makeToken)

it('9.7 a token is its prefix, 43 random characters and the checksum of both', () => {
  verifies('9.7-form')
  fc.assert(
    fc.property(made, (token) => {
      expect(token).toMatch(/^sbus_[0-9A-Za-z]{49}$/)
      expect(numberOf(token.slice(-6))).toBe(crc32(token.slice(0, -6)))
      expect(isToken(token)).toBe(true)
    }),
  )
})

it('9.7 the random part uses every character alike, and no two tokens are the same', () => {
  const tokens = Array.from({ length: 2_000 }, makeToken)
  expect(new Set(tokens).size).toBe(tokens.length)
  const counts = new Map<string, number>()
  for (const character of tokens.flatMap((token) => [...token.slice(5, 48)])) {
    counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  expect(counts.size).toBe(62)
  // 1,387 of each are to be expected; twelve standard deviations is beyond any luck.
  for (const count of counts.values()) expect(Math.abs(count - 1_387)).toBeLessThan(450)
})

it('9.7 a token with one character changed is none', () => {
  verifies('9.7-form')
  const place = fc.nat(53)
  fc.assert(
    fc.property(made, place, fc.constantFrom(...DIGITS, '_', 'é', '\n'), (token, at, other) => {
      fc.pre(token[at] !== other)
      expect(isToken(token.slice(0, at) + other + token.slice(at + 1))).toBe(false)
    }),
    { numRuns: 2_000 },
  )
})

it('9.7 nothing else is a token, and nothing makes it throw', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => !isToken(text)))
  fc.assert(fc.property(made, fc.string({ minLength: 1 }), (token, more) => !isToken(token + more)))
  fc.assert(fc.property(made, fc.nat(53), (token, length) => !isToken(token.slice(0, length))))
})

it('9.7 a digest is SHA-256, compared as a whole', () => {
  expect(digestOf('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(shortDigest(digestOf('abc'))).toBe('ba7816bf')
  expect(isSameDigest(digestOf('a'), digestOf('a'))).toBe(true)
  expect(isSameDigest(digestOf('a'), digestOf('b'))).toBe(false)
  expect(isSameDigest(digestOf('a'), 'short')).toBe(false)
})
