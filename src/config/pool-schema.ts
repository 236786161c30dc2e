/** One pool of the file: what it runs, how many, for whom, and within which bounds. Judges each value alone. */
import { z } from 'zod'
import { aggregateShape } from './aggregate-schema.ts'
import { POOL_LIMIT_NAMES } from './limit-keys.ts'
import {
  headers,
  limitShape,
  MAX_BYTES,
  MAX_TIMER_SEC,
  maxPayloadBytes,
  methodStyle,
  modalities,
  noNul,
  path,
  poolTimeoutMs,
  whole,
  word,
} from './schema-parts.ts'

const MAX_INSTANCES = 1_000

export const pool = z.strictObject({
  id: z
    .string()
    .regex(/^[^\x00-\x1f\x7f]{1,128}$/, 'a name of 1 to 128 characters')
    .describe('The name of the pool, by which clients choose it. Unique; "bus" is reserved.'),
  command: word('a program')
    .optional()
    .describe(
      'The program to run, found through PATH or by its path. It is started without a shell. Exactly one of command, agent, registry, url and members.',
    ),
  agent: z
    .enum(['openai', 'registry', 'echo'])
    .optional()
    .describe(
      'An agent that ships with the bus: openai (any Chat Completions endpoint), registry (all agents of the registry), echo.',
    ),
  registry: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'the id of an agent of the registry, such as "gemini"')
    .optional()
    .describe('The id of an agent of the ACP registry; it is installed once and run as a worker.'),
  distribution: z
    .enum(['binary', 'npx', 'uvx'])
    .optional()
    .describe(
      'With registry: how to install the agent. Left out: a binary if this platform has one, then npx, then uvx.',
    ),
  url: word('a URL')
    .optional()
    .describe(
      `An upstream in place of a program: http(s):// an MCP server, ws(s):// a message per text frame, tcp://HOST:PORT, tls://HOST:PORT or unix:PATH another bus. \${NAME} takes a value from the environment of the bus.`,
    ),
  headers: headers('With url, http(s) and ws(s): headers of every request, such as Authorization.'),
  token: noNul('a string')
    .optional()
    .describe(
      `With url: proves who the bus is, to another bus by bus::open, over HTTP as a bearer token. \${NAME} takes a value from the environment of the bus.`,
    ),
  pool: word('the id of a pool of the other bus')
    .optional()
    .describe('With url, tcp, tls and unix: the pool of the other bus. Left out: its default.'),
  ca: path()
    .optional()
    .describe('With url, https, wss and tls: who has signed its certificate, relative to this file.'),
  cert: path().optional().describe('With url, https, wss and tls: the certificate of this bus, relative to this file.'),
  key: path().optional().describe('With cert: its key, which nobody else may read.'),
  connect_timeout_sec: whole(1, MAX_TIMER_SEC).default(10).describe('With url: how long connecting may take.'),
  args: z
    .array(noNul('a string'))
    .default([])
    .describe('Arguments of the program, each as it is: no shell reads them.'),
  instances: whole(0, MAX_INSTANCES)
    .default(1)
    .describe(
      'How many workers run. With sharing "isolated": how many are kept warm for the next client (0 is allowed there).',
    ),
  max_instances: whole(1, MAX_INSTANCES)
    .default(32)
    .describe(
      'With sharing "isolated", and where principals have workers of their own: how many workers there may be at a time; the next client gets no_worker.',
    ),
  sharing: z
    .enum(['shared', 'isolated', 'lease'])
    .default('shared')
    .describe(
      "shared: all clients use all workers. isolated: a worker for each client. lease: a worker is one client's while it has requests in flight.",
    ),
  balance: z.enum(['connection', 'session']).optional().meta({
    description:
      'What goes to the next worker in turn: a connection with all its sessions, or each new session. Left out: connection; session for agent "openai".',
    default: 'connection',
  }),
  fallback: word('the id of a pool')
    .optional()
    .describe('The pool that serves in place of this one while it has no worker. Left out: no_worker.'),
  protocol: z.enum(['auto', 'plain', 'acp', 'mcp']).optional().meta({
    description:
      'What the workers speak. auto recognises it from the first message of each connection. Left out: auto; acp for agent "openai" and agents of the registry.',
    default: 'auto',
  }),
  era: z
    .enum(['auto', 'legacy', 'modern'])
    .default('auto')
    .describe(
      'For MCP workers: legacy has the initialize handshake, modern carries the version in each request. auto finds out.',
    ),
  env: z
    .record(z.string().regex(/^[^=\0]+$/, 'a variable name without "="'), noNul('a string'))
    .default({})
    .describe(
      `Variables for the workers, beside a small safe set. \${NAME} takes the value from the environment of the bus; $\${ is a literal \${.`,
    ),
  inherit_env: z
    .boolean()
    .default(false)
    .describe('true hands the whole environment of the bus to the workers, its secrets included.'),
  cwd: path()
    .optional()
    .describe('The working directory, relative to this file. Left out: the directory the bus was started in.'),
  pipes: z
    .enum(['default', 'fifo'])
    .default('default')
    .describe(
      'What the workers read from and write to. fifo: real pipes, so that /dev/stdin, /dev/stdout and /dev/stderr can be opened by name.',
    ),
  restart: z
    .enum(['always', 'on-failure', 'never'])
    .default('always')
    .describe('Whether a worker that exits is started again; always includes exit code 0.'),
  start_timeout_sec: whole(0, MAX_TIMER_SEC)
    .default(60)
    .describe('How long a worker may take to start. Cold agents have been seen to need 25 seconds. 0 means for ever.'),
  hang_timeout_sec: whole(0, MAX_TIMER_SEC)
    .default(0)
    .describe(
      'Restarts a worker that owes answers and has neither read nor written for so long. 0: off, since agents may think for long.',
    ),
  limits: z
    .strictObject(limitShape(POOL_LIMIT_NAMES))
    .default({})
    .describe('Limits of this pool in place of the general ones.'),
  sessions: z
    .strictObject({
      keep_sec: whole(0, MAX_TIMER_SEC)
        .default(0)
        .describe('How long an ACP session is kept when its clients have gone. 0: it ends with its client.'),
      journal: z
        .boolean()
        .default(true)
        .describe('What is said in sessions is kept on disk, unredacted and unencrypted; false: in memory only.'),
      question_sec: whole(0, MAX_TIMER_SEC)
        .optional()
        .describe('How long a question of the agent waits for a client. At most keep_sec, and that if left out.'),
      max_bytes: whole(4_096, MAX_BYTES)
        .default(16_777_216)
        .describe('What is kept of one session; above it the oldest turns go.'),
      max_kept: whole(0, 1_000_000)
        .default(1_000)
        .describe('Sessions without a client; above it the one that is idle for longest ends.'),
      portable: z
        .boolean()
        .default(false)
        .describe(
          'In a cluster, any node that has this pool can load its sessions: they are kept where all of them can read.',
        ),
    })
    .optional()
    .describe('Lets ACP sessions of this pool outlive their clients. Left out: a session ends with its client.'),
  trace: z
    .boolean()
    .default(false)
    .describe('Records the ACP and MCP traffic of this pool in the trace store. Messages are not changed.'),
  ...aggregateShape,
  aio: z
    .strictObject({
      type: z
        .enum(['stdio', 'mcp', 'acp'])
        .optional()
        .describe('How the agent is spoken to. Left out: what protocol says, "mcp" or "acp", else stdio.'),
      permissions: z
        .enum(['deny', 'read', 'allow'])
        .default('deny')
        .describe(
          'With type acp: what the agent is allowed when it asks. deny: nothing. read: to read and search. allow: everything, once each time.',
        ),
      mode: z
        .enum(['ndjson', 'oneshot', 'json'])
        .default('ndjson')
        .describe(
          'With type stdio: ndjson (a line per message), oneshot (one process per call, reads to the end of input), json (answers over several lines).',
        ),
      method_style: methodStyle(),
      modalities: modalities(),
      timeout_ms: poolTimeoutMs(),
      max_payload_bytes: maxPayloadBytes(),
      sampling: z
        .union([
          word('the id of a pool'),
          z.strictObject({
            tool: word('the name of a tool')
              .optional()
              .describe('The tool of the MCP server that answers sampling.start and sampling.step.'),
            pool: word('the id of a pool')
              .optional()
              .describe('The ACP pool whose agent answers when the server asks for a model.'),
          }),
        ])
        .optional()
        .describe(
          'With type mcp: the ACP pool that answers when the server asks for a model, which is your consent to that; or {tool, pool}.',
        ),
    })
    .optional()
    .describe('Makes the pool an AIO agent, called as POOL::method.'),
})
