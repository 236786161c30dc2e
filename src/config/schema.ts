/**
 * The shape of the configuration file, key by key, in the spelling of the file. Types are derived from it.
 *
 * It judges each value alone. What one key demands of another is in `rules.ts`; what a value becomes in the program is
 * in `translate.ts`. Comment keys (`_...`, `$schema`) are gone before a file gets here. A `message` given to a check is
 * the sentence that tells people what is allowed. Every key has a description: editors show it.
 */
import { z } from 'zod'
import { access, tlsDoor } from './access-schema.ts'
import { cluster } from './cluster-schema.ts'
import { httpDoor } from './http-schema.ts'
import { LIMIT_NAMES } from './limit-keys.ts'
import { pool } from './pool-schema.ts'
import {
  headers,
  httpUrl,
  limitShape,
  MAX_BYTES,
  MAX_TIMER_SEC,
  maxPayloadBytes,
  methodStyle,
  modalities,
  oneOrMany,
  path,
  timeoutMs,
  whole,
  word,
} from './schema-parts.ts'

const MAX_DAYS = 36_500

const unixDoor = z.strictObject({
  path: path().describe('The socket file, relative to this file; at most 103 bytes.'),
  pool: word('the id of a pool').optional().describe('The pool that clients of this door use unless they name one.'),
})
const tcpDoor = z.strictObject({
  address: word('HOST:PORT').describe(
    'HOST:PORT; the host is a name, an IPv4 address or an IPv6 address in brackets; port 0 picks one.',
  ),
  pool: word('the id of a pool').optional().describe('The pool that clients of this door use unless they name one.'),
})

const httpAgent = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'a name of letters, digits, ".", "_" and "-", at most 64')
    .describe('The name of the agent, called as NAME::method. Pools and agents share one set of names.'),
  type: z
    .enum(['http', 'sse', 'mcp'])
    .default('http')
    .describe(
      'http; sse is another word for it, since every answer may stream. mcp: an MCP server over Streamable HTTP.',
    ),
  endpoint: httpUrl().optional().describe('With type http: the URL that calls are posted to, exactly as it is.'),
  url: httpUrl().optional().describe('With type mcp: the URL of the server.'),
  headers: headers('Headers for the agent, such as its key.'),
  method_style: methodStyle(),
  modalities: modalities(),
  timeout_ms: timeoutMs(),
  max_payload_bytes: maxPayloadBytes(),
})

export const storeSection = z.strictObject({
  path: path()
    .optional()
    .describe(
      'The file of the store, relative to this file: traces, and what is said in kept sessions. Left out: ~/.stdio-bus/traces.db.',
    ),
  retention_days: whole(0, MAX_DAYS)
    .default(14)
    .describe('Traces, and what was said in sessions, older than this are deleted. 0 keeps them for ever.'),
  payload_bytes: whole(0, MAX_BYTES)
    .default(16_384)
    .describe('How much of each input and output of a trace is kept. 0 keeps none. Sessions are kept whole.'),
  redact: z
    .array(word('the name of a key'))
    .default(['password', 'passwd', 'secret', 'token', 'api_key', 'apikey', 'authorization'])
    .describe('Keys whose values are never stored in traces, at any depth, in upper or lower case.'),
})

export const aioSection = z.strictObject({
  store: storeSection.prefault({}).describe('Another spelling of store, at the top of the file.'),
  otlp: z
    .strictObject({
      endpoint: httpUrl().describe(
        'The URL of an OTLP/HTTP collector that takes JSON, such as http://127.0.0.1:4318/v1/traces.',
      ),
      headers: headers('Headers for the collector.'),
      payloads: z
        .boolean()
        .default(false)
        .describe('true sends inputs and outputs too. They may hold what people wrote.'),
      compat: z.boolean().default(false).describe('true adds the attributes that Langfuse and Phoenix look for.'),
    })
    .optional()
    .describe('Sends every finished call to a collector. Left out: nothing is sent.'),
  remote_queries: z
    .boolean()
    .default(false)
    .describe('true answers bus::traces.* over TCP too; else only Unix and stdio clients may ask.'),
})

const registry = z.strictObject({
  index: z
    .string()
    .regex(
      /^(?:(?:https?|file):\/\/.+|(?!\w+:\/\/)[^\0]+)$/,
      'a URL that begins with https://, http:// or file://, or a path',
    )
    .optional()
    .describe('The registry index: a URL, or a file relative to this one.'),
  cache: path().optional().describe('Where the index and the agents are kept. Left out: ~/.stdio-bus/registry.'),
  ttl_sec: whole(0, MAX_TIMER_SEC)
    .default(10_800)
    .describe('How long a fetched index is used before it is fetched again.'),
  agents: path().optional().describe('A file with agents of your own, in the form of the index; the same id replaces.'),
  credentials: path()
    .optional()
    .describe('A file with the keys of agents. Nobody else may be able to read it: chmod 600.'),
  idle_timeout_sec: whole(0, MAX_TIMER_SEC)
    .default(600)
    .describe('An agent without sessions and requests for so long is ended, and started again on demand. 0: never.'),
})

export const configFile = z
  .strictObject({
    pools: z.array(pool).describe('The pools: each is one kind of worker. At least one, unless there is a cluster.'),
    default_pool: word('the id of a pool')
      .optional()
      .describe('The pool of clients that name none. Not needed when there is only one.'),
    limits: z
      .strictObject(limitShape(LIMIT_NAMES))
      .default({})
      .describe('Bounds on everything that can grow. Each has a default.'),
    listen: z
      .strictObject({
        unix: oneOrMany(path(), unixDoor).describe(
          'Unix sockets to listen on: a path, {path, pool}, or a list of these. Mode 0600.',
        ),
        tcp: oneOrMany(word('HOST:PORT'), tcpDoor).describe(
          'TCP addresses to listen on: "HOST:PORT", {address, pool}, or a list of these.',
        ),
        tls: z
          .union([tlsDoor, z.array(tlsDoor)])
          .optional()
          .describe('TCP addresses to listen on with TLS: {address, pool, cert, key, ...}, or a list of these.'),
        http: oneOrMany(word('HOST:PORT'), httpDoor).describe(
          'Addresses to serve HTTP and WebSocket on: "HOST:PORT", {address, pool, cert, key, origins, ...}, or a list of these.',
        ),
      })
      .default({})
      .describe(
        'The doors of the bus. The flags --stdio, --unix, --tcp, --tls and --http replace them. None: stdin and stdout are the only client.',
      ),
    control: path()
      .optional()
      .describe(
        'The control socket for status, reload and trace, relative to this file. Left out: under ~/.stdio-bus.',
      ),
    access: access
      .optional()
      .describe('Who is let in, and what they may do. Left out: whoever reaches a door may use every pool.'),
    public_url: httpUrl()
      .optional()
      .describe(
        'The address of the bus as clients see it, such as https://bus.example.com, where access.oauth is used.',
      ),
    agents: z.array(httpAgent).default([]).describe('AIO agents that are reached over HTTP.'),
    store: storeSection
      .optional()
      .describe('Where traces and what is said in kept sessions are kept, how long, and how much of them.'),
    aio: aioSection
      .optional()
      .describe('Switches AIO on (so do agents, and a pool with aio) and says where its traces go.'),
    cluster: cluster
      .optional()
      .describe(
        'Makes this bus one node of many, on NATS: a client of any node reaches the pools of all. Left out: it is alone.',
      ),
    registry: registry.prefault({}).describe('Where agents named by registry id come from.'),
  })
  .describe(
    'Configuration of stdio Bus. Comments and trailing commas are tolerated; keys that begin with "_" are comments.',
  )

export type ConfigFile = z.output<typeof configFile>
export type PoolEntry = ConfigFile['pools'][number]
