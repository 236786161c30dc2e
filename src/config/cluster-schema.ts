/** The section `cluster` of the file: this bus as one node of many (contract 14.1). Judges each value alone. */
import { z } from 'zod'
import { path, whole, word } from './schema-parts.ts'

/** Above this nobody would call a node lost; below, every pause of the machine would. */
const LOST_AFTER_MS = { min: 1_500, max: 60_000 } as const

const NODE_NAME_ALLOWED = '1 to 64 letters, digits, "_" and "-", and not "all"'
const nodeName = () =>
  z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, NODE_NAME_ALLOWED)
    .refine((name) => name !== 'all', NODE_NAME_ALLOWED)

const patterns = (what: string) =>
  z
    .array(word('a pattern'))
    .default(['*'])
    .describe(`${what} Patterns of pools and agents: * is any run of characters, ? is one.`)

export const cluster = z.strictObject({
  nats: z
    .union([natsUrl(), z.array(natsUrl()).min(1)])
    .describe(
      'The NATS servers: URLs with nats://, tls://, ws:// or wss://, all of one kind. A user and a password may stand before the host, as references to the environment.',
    ),
  name: nodeName().describe('The name of the cluster: nodes of other names are strangers.'),
  node: nodeName()
    .optional()
    .describe('The name of this node, which no other one has. Left out: the name of the host.'),
  credentials: path()
    .optional()
    .describe('A file of NATS credentials (.creds), relative to this file. Nobody else may be able to read it.'),
  tls: z
    .strictObject({
      ca: path().optional().describe('Certificates of those who sign the certificates of the servers, in PEM.'),
      cert: path().optional().describe('The certificate of this node, in PEM.'),
      key: path().optional().describe('Its key. Nobody else may be able to read it.'),
    })
    .default({})
    .describe('Files for TLS, relative to this file.'),
  export: patterns('What of this node other nodes may use.'),
  import: patterns('What of other nodes this one uses.'),
  local: word('a name')
    .optional()
    .describe('By which name whoever is local here is known to other nodes. Left out: local@NODE.'),
  js_domain: word('the domain of JetStream')
    .optional()
    .describe('The JetStream domain of the directory of sessions, behind leaf servers.'),
  lost_after_ms: whole(LOST_AFTER_MS.min, LOST_AFTER_MS.max)
    .default(2_000)
    .describe('A node that is silent for so long is lost.'),
})

function natsUrl() {
  const allowed = 'a URL that begins with nats://, tls://, ws:// or wss://'
  return z.string().regex(/^(?:nats|tls|wss?):\/\/\S+$/, allowed)
}
