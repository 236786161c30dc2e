/**
 * The answer to `initialize`: which protocol, who we are, what we can do.
 *
 * An unknown version is never echoed. Invariant: a capability is named only if this process has it.
 */
import { PROTOCOL_VERSION, RequestError } from '@agentclientprotocol/sdk'
import type { Config } from './config.ts'
import { isRecord } from './errors.ts'

/** The version as the seed writes it; current clients write an integer. */
export const seedVersion = '2025-03-26'

export type Version = number | typeof seedVersion

/** The version to answer with. The SDK's own schema knows no string, so this stands in its place. */
export function readVersion(params: unknown): Version {
  const asked = isRecord(params) ? params['protocolVersion'] : undefined
  if (Number.isInteger(asked)) return PROTOCOL_VERSION
  if (asked === seedVersion) return seedVersion
  throw RequestError.invalidParams({ protocolVersion: `must be an integer, or "${seedVersion}"` })
}

export function initializeResult(version: Version, config: Config, agentVersion: string) {
  const stored = config.sessionDir !== undefined
  return {
    protocolVersion: version,
    agentInfo: { name: 'openai-agent', title: 'OpenAI agent of stdio Bus', version: agentVersion },
    agentCapabilities: {
      loadSession: stored,
      promptCapabilities: { image: config.vision, audio: false, embeddedContext: true },
      mcpCapabilities: { http: true, sse: false },
      sessionCapabilities: { close: {}, ...(stored ? { list: {}, resume: {}, delete: {} } : {}) },
    },
    authMethods: [],
  }
}
