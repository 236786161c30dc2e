/**
 * The configuration that `init` writes: JSON with comments that explain every option people need.
 *
 * It works as it is, without a key and without a network. Every line that is commented out is right when uncommented;
 * a test does so. Values are written as JSON, so a strange model name cannot break the file.
 */
import { escapeReferences } from './environment.ts'

/** A Chat Completions endpoint that somebody runs. */
export interface Endpoint {
  readonly baseUrl: string
  readonly model: string
  /** The variable that holds its key, when it wants one. */
  readonly envKey?: string
}

export interface StarterOptions {
  /** Where editors find the schema: a relative path or a URL. */
  readonly schema: string
  /** Left out: the echo agent. `demo`: the OpenAI agent with its built-in endpoint; `exported`: with what the variables say. */
  readonly agent?: Endpoint | 'demo' | 'exported'
}

export function writeStarter({ schema, agent }: StarterOptions): string {
  const pool = agent === undefined ? ECHO_POOL : openAiPool(agent)
  const id = agent === undefined ? 'echo' : 'chat'
  return `${HEAD}{
  "$schema": ${JSON.stringify(schema)},

${pool}
${MORE_POOLS}
  ],

  // The pool of clients that name none. Needed as soon as there is more than one.
  "default_pool": "${id}",
${REST}`
}

const HEAD = `// Configuration of stdio Bus. Comments and trailing commas are fine; keys that begin with "_" are comments too.
// Look it over with "stdio-bus check", start the bus with "stdio-bus start", take changes over with "stdio-bus reload".
// Pools are added by hand, with "stdio-bus add" or with "stdio-bus import": these comments stay.
`

const ECHO_POOL = `  "pools": [
    {
      // A pool is one kind of worker. Clients choose it by this name.
      "id": "echo",
      // An agent that ships with the bus and says back what it is told: it needs no key and no network.
      // Put "command" here for a program of your own, "agent": "openai" for any Chat Completions endpoint,
      // or "registry": "gemini" for an agent of the ACP registry.
      "agent": "echo",
      // How many workers run side by side. New sessions take the next one in turn.
      "instances": 1,
    },`

function openAiPool(agent: Endpoint | 'demo' | 'exported'): string {
  return `  "pools": [
    {
      // A pool is one kind of worker. Clients choose it by this name.
      "id": "chat",
      // The agent that connects ACP clients to any Chat Completions endpoint.
      "agent": "openai",
${typeof agent === 'string' ? UNNAMED_ENDPOINTS[agent] : namedEndpoint(agent)}
      // How many workers run side by side. New sessions take the next one in turn.
      "instances": 1,
    },`
}

const EXPORTED_ENDPOINT = `      // OPENAI_BASE_URL, OPENAI_MODEL, OPENAI_API_KEY and the like are taken from where the bus is started; "env" wins over them.
      "env": {
        // "OPENAI_MODEL": "llama3.2",
      },`

const DEMO_ENDPOINT = `      // No endpoint was found on this machine, so it talks to a built-in one that only demonstrates.
      // Remove this line and fill in "env" to use a real one.
      "args": ["--demo"],
      "env": {
        // "OPENAI_BASE_URL": "http://127.0.0.1:11434/v1",
        // "OPENAI_MODEL": "llama3.2",
        // "OPENAI_API_KEY": "\${OPENAI_API_KEY}",
      },`

const UNNAMED_ENDPOINTS = { demo: DEMO_ENDPOINT, exported: EXPORTED_ENDPOINT }

const NO_KEY = [
  '        // Empty: this server wants no key, and the one of another must not be sent to it.',
  '        "OPENAI_API_KEY": "",',
]

function namedEndpoint({ baseUrl, model, envKey }: Endpoint): string {
  const key = envKey === undefined ? NO_KEY : [`        "OPENAI_API_KEY": ${JSON.stringify(`\${${envKey}}`)},`]
  return [
    '      "env": {',
    `        "OPENAI_BASE_URL": ${JSON.stringify(escapeReferences(baseUrl))},`,
    `        "OPENAI_MODEL": ${JSON.stringify(escapeReferences(model))},`,
    ...key,
    '      },',
  ].join('\n')
}

const MORE_POOLS = `    // {
    //   "id": "coder",
    //   // Found through PATH, started without a shell: arguments are passed as they are.
    //   "command": "opencode",
    //   "args": ["acp"],
    //   "instances": 2,
    //   // shared: all clients use all workers. isolated: a worker for each client. lease: a worker is one client's
    //   // while it has requests in flight; choose it for MCP servers that put questions to their clients.
    //   "sharing": "shared",
    //   // Workers get PATH, HOME, LANG and the like, and this. \${NAME} takes a value from the environment of the bus.
    //   "env": { "API_KEY": "\${API_KEY}" },
    //   // Relative to this file. Left out: the directory the bus was started in.
    //   "cwd": ".",
    //   // always (exit code 0 too), on-failure, never.
    //   "restart": "always",
    //   // Restart a worker that owes answers and has been silent for so long. 0: off, since agents may think for long.
    //   "hang_timeout_sec": 0,
    //   // Limits for this pool alone.
    //   "limits": { "max_restarts": 10 },
    //   // Record its traffic: see "stdio-bus trace ls".
    //   "trace": true,
    // },`

const REST = `
  // Bounds on everything that can grow. These are the ones people change; the others have good defaults.
  "limits": {
    // The longest line in bytes. The default, 1 MiB, is too short for agents: an image travels as one line of base64.
    // Whoever sends a longer line is closed, so 32 MiB is chosen here. Memory is used only when such a line comes.
    "max_input_buffer": 33554432,
    // Bytes waiting for a slow reader before those who send to it are paused. Nothing is dropped.
    // "max_output_queue": 4194304,
    // A worker that dies more often than this within restart_window_sec is parked until the window has room.
    // "max_restarts": 5,
    // "restart_window_sec": 60,
    // How long a stop waits for outstanding requests.
    // "drain_timeout_sec": 30,
    // Answer requests with an error after this. 0: never.
    // "request_timeout_sec": 0,
  },

  // The doors. Without any, the bus serves one client on its own stdin and stdout.
  // The flags --stdio, --unix, --tcp, --tls and --http replace them.
  // "listen": {
  //   // A socket file that only you may use, relative to this file.
  //   "unix": "stdio-bus.sock",
  //   // HOST:PORT. Nobody is asked who they are, so only addresses of this machine are allowed by default.
  //   "tcp": "127.0.0.1:7400",
  // },

  // Agents called by name as agent::method, and where traces go. See docs/config.md.
  // "aio": { "store": { "retention_days": 14, "redact": ["password", "token"] } },

  // Where agents named by "registry" come from. The file with their keys must be readable by you alone (chmod 600).
  // "registry": { "credentials": "credentials.json" },
}
`
