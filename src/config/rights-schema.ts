/**
 * What a principal may do, as a file spells it, key by key: in `access.anonymous` and for every principal of the access
 * file (contract 9.18 to 9.22). It judges each value alone and decides nothing about who somebody is.
 */
import { z } from 'zod'
import type { Rights, Role } from '../kernel/rights.ts'
import type { PrincipalEnvironment } from './bus-config.ts'
import { type Environment, expandReferences } from './environment.ts'
import { noNul, whole } from './schema-parts.ts'

const MAX_PATTERNS = 256
const MAX_COUNT = 1_000_000
const RATE = /^([1-9]\d{0,6})\/(s|m|h)$/
const PERIODS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 }

const pattern = () =>
  z.string().regex(/^[^\0]{1,256}$/, 'a pattern of 1 to 256 characters, in which * is any text and ? is one character')
const patterns = () => z.array(pattern()).max(MAX_PATTERNS)
const variables = () => z.record(z.string().regex(/^[^=\0]+$/, 'a variable name without "="'), noNul('a string'))

export const rightsShape = {
  pools: patterns().describe('The pools and agents that may be used, as patterns; [] is none, ["*"] is all.'),
  tools: z
    .strictObject({
      allow: patterns().optional().describe('The tools that may be called and are listed. Left out: all.'),
      deny: patterns().optional().describe('The tools that may not be called and are not listed; it wins over allow.'),
    })
    .optional()
    .describe('Patterns of tools; with "::" they mean POOL::TOOL. Left out: all tools.'),
  rate: z
    .string()
    .regex(RATE, 'a number from 1 to 9999999 and a period, such as "50/s", "600/m" or "1000/h"')
    .optional()
    .describe('How many messages may go to workers and agents in a second, a minute or an hour. Left out: any number.'),
  max_pending: whole(1, MAX_COUNT)
    .optional()
    .describe('How many requests may wait for their answers at a time. Left out: what the limits of the bus allow.'),
  max_connections: whole(1, MAX_COUNT)
    .optional()
    .describe(
      'How many connections there may be at a time, over all doors. Left out: what the limits of the bus allow.',
    ),
  env: z
    .record(
      z.string().regex(/^[^=\0]+$/, 'a variable name without "=", or the id of a pool'),
      z.union([variables(), noNul('a string')]),
    )
    .optional()
    .describe(
      `Variables for workers that are started for this principal alone; under the id of a pool, for that pool only. \${NAME} takes the value from the environment of the bus; $\${ is a literal \${.`,
    ),
}

export type RightsEntry = z.output<z.ZodObject<typeof rightsShape>>

/** What is left of an entry when its spelling is gone. */
export function translateRights(role: Role, entry: RightsEntry): Rights {
  const { pools, tools, rate, max_pending: maxPending, max_connections: maxConnections } = entry
  const environmentFor = poolsWithVariables(entry.env ?? {})
  return {
    role,
    pools,
    ...(tools === undefined ? {} : { tools: { ...omitAbsent({ allow: tools.allow, deny: tools.deny }) } }),
    ...(rate === undefined ? {} : { rate: translateRate(rate) }),
    ...omitAbsent({ maxPending, maxConnections }),
    ...(environmentFor.length === 0 ? {} : { environmentFor }),
  }
}

/** Its variables with the values that they refer to: it may hold secrets. */
export function translateEnvironment(
  env: NonNullable<RightsEntry['env']>,
  environment: Environment,
): PrincipalEnvironment {
  const resolved = (text: string): string => expandReferences(text, environment).value
  return mapValues(env, (value) => (typeof value === 'string' ? resolved(value) : mapValues(value, resolved)))
}

function mapValues<T, U>(map: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]))
}

function translateRate(text: string): { count: number; perMs: number } {
  const [, count, period] = RATE.exec(text)!
  return { count: Number(count), perMs: PERIODS_MS[period!]! }
}

/** Variables without a pool are for every pool. */
function poolsWithVariables(env: NonNullable<RightsEntry['env']>): string[] {
  const isForAll = Object.values(env).some((value) => typeof value === 'string')
  return isForAll ? ['*'] : Object.keys(env)
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function omitAbsent<T extends object>(entries: T): Present<T> {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as Present<T>
}
