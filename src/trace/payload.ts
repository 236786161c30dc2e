/**
 * Turns what a call carried into the JSON text that may be kept: redacted, without media content, no longer than the limit.
 *
 * Redaction comes before the cut, so no part of a secret survives at the edge. What is kept is always valid JSON. The walk
 * is bounded in depth: what lies deeper is not kept, because it was not looked at.
 */
import { JsonText } from '../wire/ready-json.ts'
import { digestItem, digestText, mayHoldMedia } from './media.ts'

export interface PayloadPolicy {
  /** Payloads above this many bytes are kept as their beginning. */
  readonly payloadBytes: number
  /** Values of these keys are not kept, at any depth, whatever the case of the key. */
  readonly redact: readonly string[]
}

export interface KeptPayload {
  readonly text: string
  readonly truncated: boolean
}

export const REDACTED = '[redacted]'
const TOO_DEEP = '[too deep to keep]'
const MAX_DEPTH = 64

/** The JSON text of a payload, or undefined when it has none (nothing given, a cycle, endless nesting). */
export function encodePayload(payload: unknown): string | undefined {
  if (payload instanceof JsonText) return payload.text
  if (payload === undefined || payload === null) return undefined
  try {
    return JSON.stringify(payload)
  } catch {
    return JSON.stringify('[not representable as JSON]')
  }
}

/** Makes the text of a payload fit to be kept; made once per store, since the keys are prepared here. */
export function payloadKeeper(policy: PayloadPolicy): (text: string) => KeptPayload {
  const keys = new Set(policy.redact.map((key) => key.toLowerCase()))
  return (text) => {
    const clean = needsWalk(text, keys) ? rewrite(text, keys) : text
    return cut(clean, policy.payloadBytes)
  }
}

function needsWalk(text: string, keys: ReadonlySet<string>): boolean {
  return mayHoldMedia(text) || maySpellKey(text, keys) || mayNestTooDeep(text)
}

/** Wrong only in the harmless direction: brackets in strings count too. */
function mayNestTooDeep(text: string): boolean {
  let opened = 0
  for (let at = text.indexOf('{'); at !== -1 && opened <= MAX_DEPTH; at = text.indexOf('{', at + 1)) opened += 1
  for (let at = text.indexOf('['); at !== -1 && opened <= MAX_DEPTH; at = text.indexOf('[', at + 1)) opened += 1
  return opened > MAX_DEPTH
}

/** Text that was written by a peer may spell a key with escapes, so a backslash means: look. */
function maySpellKey(text: string, keys: ReadonlySet<string>): boolean {
  if (keys.size === 0) return false
  if (text.includes('\\')) return true
  const lower = text.toLowerCase()
  for (const key of keys) if (lower.includes(key)) return true
  return false
}

function rewrite(text: string, keys: ReadonlySet<string>): string {
  try {
    return JSON.stringify(clean(JSON.parse(text), keys, 0))
  } catch {
    return JSON.stringify('[not JSON]')
  }
}

function clean(value: unknown, keys: ReadonlySet<string>, depth: number): unknown {
  if (typeof value === 'string') return cleanText(value, keys, depth)
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_DEPTH) return TOO_DEEP
  if (Array.isArray(value)) return value.map((item) => clean(item, keys, depth + 1))
  const item = value as Record<string, unknown>
  const kept = digestItem(item) ?? item
  // Built from entries because a key of the wire may be `__proto__`, which an assignment would swallow.
  return Object.fromEntries(
    Object.entries(kept).map(([key, inner]) => [
      key,
      keys.has(key.toLowerCase()) ? REDACTED : clean(inner, keys, depth + 1),
    ]),
  )
}

/** Arguments of tools travel as JSON inside a string: the same keys are secret there. */
function cleanText(text: string, keys: ReadonlySet<string>, depth: number): unknown {
  const media = digestText(text)
  if (media) return media
  const first = text.trimStart()[0]
  if ((first !== '{' && first !== '[') || !maySpellKey(text, keys)) return text
  try {
    const parsed = JSON.parse(text)
    return depth === MAX_DEPTH ? TOO_DEEP : JSON.stringify(clean(parsed, keys, depth + 1))
  } catch {
    return text
  }
}

function cut(text: string, limitBytes: number): KeptPayload {
  const bytes = Buffer.byteLength(text)
  if (bytes <= limitBytes) return { text, truncated: false }
  // A cut through a character leaves a replacement character at the end, which says nothing: drop it.
  const head = Buffer.from(text)
    .subarray(0, limitBytes)
    .toString('utf8')
    .replace(/\uFFFD$/, '')
  return { text: JSON.stringify({ truncated: true, bytes, head }), truncated: true }
}
