import { RequestError } from '@agentclientprotocol/sdk'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { type Config, readConfig } from './config.ts'
import { initializeResult, readVersion } from './initialize.ts'

const configOf = (env: Record<string, string>) => (readConfig(env) as { config: Config }).config

describe('initialize', () => {
  it('answers every integer with 1', () => {
    verifies('O1-integer')
    fc.assert(
      fc.property(fc.oneof(fc.integer(), fc.constantFrom(0, 1, 2, 65535)), (protocolVersion) => {
        expect(readVersion({ protocolVersion })).toBe(1)
      }),
      { numRuns: 200 },
    )
  })

  it('answers the form of the seed with itself, and refuses everything else', () => {
    verifies('O1-string')
    expect(readVersion({ protocolVersion: '2025-03-26' })).toBe('2025-03-26')
    const other = fc.oneof(
      fc.string(),
      fc.double({ noInteger: true }),
      fc.constant(null),
      fc.constant(undefined),
      fc.object(),
    )
    fc.assert(
      fc.property(other, (protocolVersion) => {
        expect(() => readVersion({ protocolVersion })).toThrow(RequestError)
      }),
      { numRuns: 200 },
    )
    expect(() => readVersion(undefined)).toThrow(RequestError)
  })

  it('names what it can do, with markers that are objects', () => {
    verifies('O1-markers')
    fc.assert(
      fc.property(fc.boolean(), fc.boolean(), fc.string(), (vision, stored, version) => {
        const env = { ...(vision ? { OPENAI_VISION: '1' } : {}), ...(stored ? { OPENAI_SESSION_DIR: 'x' } : {}) }
        const result = initializeResult(1, configOf(env), version)
        expect(result.agentInfo).toMatchObject({ name: 'openai-agent', version })
        expect(result.authMethods).toEqual([])
        const { agentCapabilities: can } = result
        expect(can.loadSession).toBe(stored)
        expect(can.promptCapabilities).toMatchObject({ embeddedContext: true, image: vision })
        expect(can.mcpCapabilities.http).toBe(true)
        const markers = stored ? { close: {}, list: {}, resume: {}, delete: {} } : { close: {} }
        expect(can.sessionCapabilities).toEqual(markers)
      }),
      { numRuns: 100 },
    )
  })
})
