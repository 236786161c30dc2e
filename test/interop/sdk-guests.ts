/** Clients of the official MCP SDKs, both generations and both eras, at a socket of the bus. */
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { onTestFinished } from 'vitest'
import type { Bus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { SocketTransport } from './socket-transport.ts'

export const INFO = { name: 'interop', version: '1.0.0' }

export type Era = 'v1' | 'v2 legacy' | 'v2 modern'
export interface Guest {
  readonly client: Message
  readonly transport: SocketTransport
  /** What the SDK complained of: an unknown id or token, for one. */
  readonly complaints: string[]
}

/** `pool`: which one the connection is for; left out: the default. */
export async function join(bus: Bus, era: Era, capabilities = {}, pool?: string): Promise<Guest> {
  const transport = new SocketTransport(bus, pool)
  const negotiation = era === 'v2 modern' ? { versionNegotiation: { mode: 'auto' as const } } : {}
  const client: Message =
    era === 'v1' ? new ClientV1(INFO, { capabilities }) : new ClientV2(INFO, { capabilities, ...negotiation })
  const complaints: string[] = []
  client.onerror = (error: Error) => complaints.push(error.message)
  onTestFinished(() => client.close())
  await client.connect(transport)
  return { client, transport, complaints }
}
