import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { detailOf, httpMessage, networkMessage, reasonOf } from './errors.ts'
import { redactor, toLine } from './redact.ts'
import { isRetryable } from './retry.ts'

const url = 'https://api.example/v1/chat/completions'
const asIs = (text: string) => text

describe('messages', () => {
  it('classify every status', () => {
    verifies('O8-statuses')
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 999 }), fc.option(fc.string(), { nil: undefined }), (status, detail) => {
        const message = httpMessage(url, { status, detail })
        if (status === 401 || status === 403) {
          expect(message).toBe(`Authentication error (HTTP ${status}) calling ${url}. Check your OPENAI_API_KEY.`)
        } else if (status === 429) {
          expect(message).toBe(`Rate limit exceeded (HTTP 429) calling ${url}. Please retry later.`)
        } else if (status >= 500) {
          expect(message).toBe(`Server error (HTTP ${status}) from ${url}.`)
        } else {
          expect(message).toBe(`HTTP error (${status}) from ${url}.${detail ? ` ${detail}` : ''}`)
        }
        expect(isRetryable(status)).toBe(status === 429 || status >= 500)
      }),
      { numRuns: 1000 },
    )
  })

  it('name the innermost reason of a network error', () => {
    const refused = new Error('connect ECONNREFUSED 127.0.0.1:9')
    const failed = new TypeError('fetch failed', { cause: refused })
    expect(networkMessage(url, reasonOf(new Error('lost', { cause: failed }), asIs))).toBe(
      `Network error connecting to ${url}: connect ECONNREFUSED 127.0.0.1:9`,
    )
    expect(reasonOf(new AggregateError([refused], ''), asIs)).toBe(refused.message)
    expect(reasonOf('a string', asIs)).toBe('a string')
  })

  it.each([
    ['{"error":{"message":"no such model"}}', 'no such model'],
    ['{"error":"no such model"}', 'no such model'],
    ['{"message":"no such model"}', 'no such model'],
    ['no such model\n', 'no such model'],
    ['<html>no</html>', undefined],
    ['{"detail":[]}', undefined],
    ['x'.repeat(501), undefined],
    ['', undefined],
  ])('find the endpoint’s own words in %j', (body, detail) => {
    expect(detailOf(body, asIs)).toBe(detail)
  })
})

describe('redaction', () => {
  it('cuts every secret out of any text', () => {
    verifies('O10-redacted')
    const secret = fc
      .string({ minLength: 4, maxLength: 40, unit: 'grapheme-ascii' })
      .filter((one) => !'[secret]'.includes(one))
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (key, before, after) => {
        const shown = redactor({ apiKey: key, headers: {} })(`${before}${key}${after}${key}`)
        expect(shown.replaceAll('[secret]', '')).not.toContain(key)
      }),
      { numRuns: 200 },
    )
  })

  it('cuts out header values too, the longest first', () => {
    const redact = redactor({ apiKey: 'secret-key', headers: { 'X-Token': 'secret-key-and-more' } })
    expect(redact('a secret-key-and-more b secret-key c')).toBe('a [secret] b [secret] c')
  })

  it('leaves no control character in a line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(toLine(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
        expect(toLine(text).length).toBeLessThanOrEqual(501)
      }),
      { numRuns: 200 },
    )
  })
})
