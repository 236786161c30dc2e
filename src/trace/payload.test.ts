import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { encodePayload, payloadKeeper } from './payload.ts'

const keep = (value: unknown, redact: string[] = [], payloadBytes = 10_000) =>
  JSON.parse(payloadKeeper({ redact, payloadBytes })(encodePayload(value) ?? 'null').text)

describe('redaction', () => {
  it.each([
    [{ password: 'x' }, { password: '[redacted]' }],
    [{ PassWord: { a: 1 } }, { PassWord: '[redacted]' }],
    [[{ deep: [{ password: 'x' }] }], [{ deep: [{ password: '[redacted]' }] }]],
    [{ passwords: 'x' }, { passwords: 'x' }],
    [{ arguments: '{"password":"x","n":1}' }, { arguments: '{"password":"[redacted]","n":1}' }],
    [{ text: 'the password is x' }, { text: 'the password is x' }],
  ])('%j becomes %j', (given, kept) => {
    expect(keep(given, ['Password'])).toEqual(kept)
  })

  it('finds a key that its writer spelled with escapes', () => {
    const kept = payloadKeeper({ redact: ['password'], payloadBytes: 1_000 })('{"p\\u0061ssword":"x"}')
    expect(JSON.parse(kept.text)).toEqual({ password: '[redacted]' })
  })

  it('keeps a key named __proto__ an ordinary key', () => {
    const kept = payloadKeeper({ redact: ['password'], payloadBytes: 1_000 })('{"__proto__":{"password":"x"}}')
    expect(kept.text).toBe('{"__proto__":{"password":"[redacted]"}}')
  })

  it('keeps nothing it has not looked at', () => {
    const text = `${'[{"a":'.repeat(80)}{"password":"hunter2"}${'}]'.repeat(80)}`
    expect(payloadKeeper({ redact: ['password'], payloadBytes: 10_000 })(text).text).not.toContain('hunter2')
  })
})

describe('media', () => {
  const content = Buffer.from('a picture')
  const base64 = content.toString('base64')
  const digest = { bytes: 9, sha256: createHash('sha256').update(content).digest('hex') }

  it.each([
    [
      { type: 'image', value: base64 },
      { type: 'image', ...digest },
    ],
    [
      { type: 'audio', data: base64, mimeType: 'audio/mpeg' },
      { type: 'audio', mimeType: 'audio/mpeg', ...digest },
    ],
    [
      { uri: 'file:///a', mimeType: 'application/pdf', blob: base64 },
      { uri: 'file:///a', mimeType: 'application/pdf', type: 'file', ...digest },
    ],
    [
      { type: 'image', value: `data:image/png;base64,${base64}` },
      { type: 'image', mimeType: 'image/png', ...digest },
    ],
    [
      { image_url: `data:image/png;base64,${base64}` },
      { image_url: { type: 'image', mimeType: 'image/png', ...digest } },
    ],
    [
      { type: 'image', value: 'https://example.com/a.png' },
      { type: 'image', value: 'https://example.com/a.png' },
    ],
    [
      { type: 'text', value: base64 },
      { type: 'text', value: base64 },
    ],
    [
      { type: 'file', value: { a: 1 } },
      { type: 'file', value: { a: 1 } },
    ],
    [
      { type: 'file', value: 'not base64!' },
      { type: 'file', value: 'not base64!' },
    ],
    [
      { type: 'video', value: '' },
      { type: 'video', value: '' },
    ],
  ])('%j becomes %j', (given, kept) => {
    expect(keep({ inputs: [given] })).toEqual({ inputs: [kept] })
  })

  it('of many megabytes is no heavier than its hash', () => {
    const big = Buffer.alloc(12_000_000, 'x').toString('base64')
    expect(keep({ type: 'video', value: big })).toMatchObject({ type: 'video', bytes: 12_000_000 })
  })
})

describe('the limit', () => {
  const textOf = (length: number) => JSON.stringify('x'.repeat(length - 2))

  it.each([
    ['one under', 99, false],
    ['at', 100, false],
    ['one over', 101, true],
  ])('a payload %s it', (_, length, truncated) => {
    expect(payloadKeeper({ redact: [], payloadBytes: 100 })(textOf(length)).truncated).toBe(truncated)
  })

  it('keeps the beginning and says how long it was', () => {
    expect(keep('x'.repeat(50), [], 20)).toEqual({ truncated: true, bytes: 52, head: `"${'x'.repeat(19)}` })
  })

  it('does not cut a character in two', () => {
    const { head } = keep('é'.repeat(50), [], 20)
    expect(head).toBe(`"${'é'.repeat(9)}`)
  })

  it('counts after redaction, so no part of a secret is left at the edge', () => {
    const kept = JSON.stringify(keep({ password: 's'.repeat(500), rest: 'r'.repeat(500) }, ['password'], 100))
    expect(kept).not.toContain('sss')
  })
})
