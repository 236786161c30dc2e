/** A web door in the configuration file: `listen.http` (contract 10.1, 10.2). */
import { z } from 'zod'
import { tlsDoor } from './access-schema.ts'
import { httpUrl, MAX_TIMER_SEC, path, whole, word } from './schema-parts.ts'

const MAX_NAMES = 256
const { address, pool, cert, key, client_ca, client_cert } = tlsDoor.shape

export const httpDoor = z.strictObject({
  address,
  pool,
  cert: cert.optional().describe('The certificate of the bus in PEM, relative to this file: the door then speaks TLS.'),
  key: key.optional(),
  client_ca,
  client_cert,
  session_idle_sec: whole(1, MAX_TIMER_SEC)
    .default(1_800)
    .describe('An MCP session without a stream and without anything in flight for so long ends.'),
  max_connections: whole(1, 1_000_000).default(4_096).describe('Connections at a time; the next one gets 503.'),
  sessions_file: path()
    .optional()
    .describe('Where MCP sessions are remembered over a restart of the bus, relative to this file. Mode 0600.'),
  console: z.boolean().default(true).describe('false: no console and no API for it at this door.'),
  public_url: httpUrl()
    .optional()
    .describe('The address of this door as clients see it, behind a proxy. Left out: the public_url of the bus.'),
  hosts: z
    .array(word('a host name'))
    .max(MAX_NAMES)
    .default([])
    .describe(
      'Names in the Host header that are this door, beside localhost, IP addresses and the name it is bound to.',
    ),
  origins: z
    .array(httpUrl())
    .max(MAX_NAMES)
    .default([])
    .describe('Origins whose pages may use this door from a browser, such as https://app.example.com.'),
})
