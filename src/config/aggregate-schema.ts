/** The keys of a pool that is made of others (contract 13.1). Judges each value alone; `aggregate-rules.ts` the rest. */
import { z } from 'zod'
import { whole, word } from './schema-parts.ts'

const MAX_MEMBERS = 64
const MAX_PINS = 64
const MAX_WAIT_MS = 600_000
const MAX_PATTERNS = 256

const newName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'a name of letters, digits, "_" and "-", at most 64')
const patterns = () => z.array(word('a pattern').max(256)).max(MAX_PATTERNS)

const member = z.strictObject({
  pool: word('the id of a pool').describe('The pool that is a member.'),
  prefix: z
    .string()
    .regex(/^[A-Za-z0-9_-]{0,64}$/, 'letters, digits, "_" and "-", at most 64')
    .optional()
    .describe('What stands before the names of its tools and prompts. Left out: its id and "_". Empty: nothing.'),
  allow: patterns()
    .default(['*'])
    .describe('Which of its tools and prompts are shown, by their own names; "*" and "?" are patterns.'),
  deny: patterns().default([]).describe('Which of them are not shown; deny wins.'),
  rename: z.record(word('a name'), newName).default({}).describe('New names, as they are, by own name.'),
})

/** Beside `id`, these are all the keys that an aggregate has. */
export const aggregateShape = {
  members: z
    .array(z.union([word('the id of a pool'), member]))
    .min(1)
    .max(MAX_MEMBERS)
    .optional()
    .describe('Makes one MCP server of these pools: ids, or objects with pool, prefix, allow, deny and rename.'),
  mode: z
    .enum(['all', 'search'])
    .default('all')
    .describe('With members. all: every tool is listed. search: find_tools, call_tool and what pin names are.'),
  pin: z
    .array(word('the name of a tool'))
    .max(MAX_PINS)
    .default([])
    .describe('With mode "search": tools that are listed all the same, by the names they are listed with.'),
  max_name: whole(16, 64)
    .default(48)
    .describe('With members: the longest name that is listed; hosts add their own part, and many models take 64.'),
  list_wait_ms: whole(0, MAX_WAIT_MS)
    .default(2_000)
    .describe('With members: how long a list waits for those that were never listed; they follow with a list_changed.'),
} as const

export const AGGREGATE_KEYS: readonly string[] = ['id', ...Object.keys(aggregateShape)]
