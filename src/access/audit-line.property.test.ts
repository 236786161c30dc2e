/** A line of the audit is what the plain way of writing it gives, whatever was written before it. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AuditEvent, auditLine } from './audit-line.ts'

const TEXTS = [
  'principal',
  'subject',
  'via',
  'credential',
  'door',
  'peer',
  'pool',
  'method',
  'tool',
  'outcome',
  'reason',
] as const
const ASCII = /^[ -~]*$/

const text = fc.option(
  fc.oneof(
    fc.constantFrom('alice', 'tcp', 'a"b', 'back\\slash', 'new\nline', 'é', '\u202e', '\ud800', '😀'),
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.string({ minLength: 250, maxLength: 262 }),
  ),
  { nil: undefined },
)
const event = fc.record({
  event: fc.constantFrom('open', 'call', 'refused'),
  ...Object.fromEntries(TEXTS.map((name) => [name, text])),
  client: fc.option(fc.nat(), { nil: undefined }),
  durationMs: fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined }),
}) as fc.Arbitrary<AuditEvent>
const atMs = fc.integer({ min: 0, max: 4e12 })

test('9.23 every line is JSON of the same keys, with the values that were told, cut at 256', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(event, atMs), { maxLength: 8 }), (told) => {
      for (const [each, at] of told) {
        const line = auditLine(each, at)
        expect(line.indexOf('\n')).toBe(line.length - 1)
        const read = JSON.parse(line)
        expect(read).toMatchObject({ time: new Date(at).toISOString(), event: each.event, client: each.client ?? null })
        for (const name of TEXTS) expect(read[name]).toBe(shownOf(each[name]))
        expect(Object.keys(read)).toHaveLength(16)
      }
    }),
  )
})

test('9.23 what would move a cursor is escaped, in a text that comes again too', () => {
  for (let times = 0; times < 2; times++)
    expect(auditLine({ event: 'call', method: '\u001b[2J\u202ex\u007f' }, 0).trimEnd()).toMatch(ASCII)
})

test('9.23 more texts than are remembered are all spelled', () => {
  for (let n = 0; n < 3_000; n++)
    expect(JSON.parse(auditLine({ event: 'call', tool: `tool-${n}` }, n)).tool).toBe(`tool-${n}`)
})

function shownOf(value: string | undefined): string | null {
  if (value === undefined) return null
  return value.length <= 256 ? value : value.slice(0, 256).replace(/[\ud800-\udbff]$/, '')
}
