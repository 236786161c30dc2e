import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { FAULT_CODES, fault, type Reason } from './faults.ts'

const page = readFileSync(new URL('../../docs/aio.md', import.meta.url), 'utf8')
const reasons = Object.entries(FAULT_CODES) as [Reason, number][]

describe('faults', () => {
  it.each(reasons)('%s is documented with its code', (reason, code) => {
    const row = page.split('\n').find((line) => line.startsWith('|') && line.includes(`\`${reason}\``))
    expect(row?.split('|')[2]?.trim()).toBe(String(code))
  })

  it.each(reasons)('%s has a sentence without holes', (reason) => {
    const detail = new Proxy({}, { get: () => 'x' })
    expect(fault(reason, detail).message).not.toMatch(/undefined|\[object/)
  })

  it('says whether to try again where the agent or the bus failed', () => {
    for (const [reason, code] of reasons) {
      expect([reason, 'retryable' in (fault(reason).data as object)]).toEqual([reason, code === -32603])
    }
  })

  it('quotes and cuts what a peer said', () => {
    const { message } = fault('unknown_agent', { agent: `\u001b[31m${'x'.repeat(500)}`, known: [] })
    expect(message).toContain('\\u001b[31m')
    expect(message.length).toBeLessThan(200)
  })
})
