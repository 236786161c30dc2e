/** The pieces that several keys of the file are made of: texts, paths, whole numbers, and what all AIO agents share. */
import { z } from 'zod'
import { defaultLimit, LIMIT_KEYS, type LimitName } from './limit-keys.ts'

const MODALITIES = ['text', 'image', 'audio', 'video', 'file'] as const
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** The longest a timer of the runtime can be set to. */
export const MAX_TIMER_SEC = Math.floor(MAX_TIMEOUT_MS / 1000)
export const MAX_BYTES = 1024 ** 3

export const noNul = (allowed: string) => z.string().regex(/^[^\0]*$/, allowed)
const oneLine = () => z.string().regex(/^[^\0\r\n]*$/, 'a text on one line')
export const word = (allowed: string) => z.string().regex(/^[^\0]+$/, allowed)
export const path = () => word('a path')
export const whole = (min: number, max: number) => z.int().min(min).max(max)

export function httpUrl() {
  const allowed = 'a URL that begins with http:// or https://'
  return z
    .string()
    .regex(/^https?:\/\/[^\s/?#]+\S*$/, allowed)
    .refine((text) => URL.canParse(text), allowed)
}

export function limitShape<K extends LimitName>(keys: readonly K[]): Record<K, z.ZodOptional<z.ZodInt>> {
  const rows = keys.map((key) => {
    const { min, max, description } = LIMIT_KEYS[key]
    return [
      key,
      whole(min, max)
        .optional()
        .meta({ description, default: defaultLimit(key) }),
    ]
  })
  return Object.fromEntries(rows)
}

export function oneOrMany<T extends z.ZodType, D extends z.ZodType>(short: T, long: D) {
  return z.union([short, long, z.array(z.union([short, long]))]).optional()
}

export function headers(purpose: string) {
  return z
    .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'the name of an HTTP header'), oneLine())
    .default({})
    .describe(`${purpose} \${NAME} takes a value from the environment of the bus; $\${ is a literal \${.`)
}

export function methodStyle() {
  return z
    .enum(['namespaced', 'bare'])
    .default('namespaced')
    .describe('namespaced: the agent receives AGENT::method, as the protocol says. bare: it receives the method alone.')
}

export function modalities() {
  return z
    .array(z.enum(MODALITIES))
    .default([...MODALITIES])
    .describe('What kinds of input the agent takes. Left out: all five.')
}

export function timeoutMs() {
  return whole(1, MAX_TIMEOUT_MS).default(30_000).describe('How long a call may take once it is written to the agent.')
}

/** Of an agent in a pool: one that speaks ACP may think for long. */
export function poolTimeoutMs() {
  return whole(1, MAX_TIMEOUT_MS).optional().meta({
    description: 'How long a call may take once it is written to the agent. Left out: 30000; 600000 with type acp.',
    default: 30_000,
  })
}

export function maxPayloadBytes() {
  return whole(1, MAX_BYTES)
    .default(4_194_304)
    .describe('The longest call in bytes. limits.max_input_buffer bounds it too: raise that as well for media.')
}
