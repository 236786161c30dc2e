/** The shape of the access file, key by key, in its own spelling (contract 9.9). It judges each value alone. */
import { z } from 'zod'
import type { SchemaNode } from '../config/json-schema.ts'
import { rightsShape } from '../config/rights-schema.ts'

export const MAX_PRINCIPALS = 10_000
export const MAX_TOKENS = 8
export const ROLES = ['user', 'observer', 'admin'] as const
export const NAME = /^[A-Za-z0-9._@-]{1,64}$/
export const NAME_ALLOWED = 'a name of 1 to 64 letters, digits, ".", "_", "@" and "-"'

const token = z.strictObject({
  sha256: z
    .string()
    .regex(/^[0-9A-Fa-f]{64}$/, '64 hexadecimal digits, as "stdio-bus token" writes them')
    .describe('The SHA-256 of the token; the token itself is nowhere.'),
  expires: z.iso
    .datetime({ offset: true, error: 'a time such as "2027-11-16T09:00:00Z"' })
    .optional()
    .describe('When it ends. Left out: never.'),
})

const principal = z.strictObject({
  name: z.string().regex(NAME, NAME_ALLOWED).describe('Who it is; "local" and "anonymous" are reserved.'),
  role: z
    .enum(ROLES)
    .default('user')
    .describe('user: uses its pools. observer: looks at them, and sends no message. admin: all, and reloads.'),
  ...rightsShape,
  tokens: z.array(token).max(MAX_TOKENS).default([]).describe('Its tokens, as digests.'),
})

export const accessFile = z.strictObject({
  principals: z.array(principal).max(MAX_PRINCIPALS).describe('Who may use the bus, beside those on this machine.'),
})

export type PrincipalEntry = z.output<typeof accessFile>['principals'][number]

let schemaOfKeys: SchemaNode | undefined

/** The schema that mistakes are explained with; made when the first one is found. */
export function accessFileSchema(): SchemaNode {
  return (schemaOfKeys ??= z.toJSONSchema(accessFile, { io: 'input', target: 'draft-7' }) as SchemaNode)
}
