/**
 * The multimodal inputs of the method `input`, checked against the seed's table and the agent's own list.
 *
 * Values are looked at, never changed and never fetched: a URL stays a URL. Base64 is the standard alphabet, padded,
 * without white space, so that every agent reads the same bytes.
 */
import { MODALITIES, type Modality, type NamedAgent } from './agent-spec.ts'
import { type Refusal, refuse } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'

const KNOWN: ReadonlySet<string> = new Set(MODALITIES)

/** The parameters with `inputs` in its one place, or the first thing that is wrong with them. */
export function checkInputs(agent: NamedAgent, params: unknown): { readonly params: JsonObject } | Refusal {
  const given = objectOr(params)
  const inputs = given['inputs'] ?? (given['input'] === undefined ? undefined : [given['input']])
  if (!Array.isArray(inputs) || inputs.length === 0) return refuse('missing_inputs')
  const accepts = agent.modalities ?? MODALITIES
  for (const [index, item] of inputs.entries()) {
    const refusal = checkItem(item, index, accepts)
    if (refusal !== undefined) return refusal
  }
  return { params: { ...given, inputs } }
}

function checkItem(item: unknown, index: number, accepts: readonly Modality[]): Refusal | undefined {
  if (!isObject(item)) return refuse('invalid_input', { index })
  const { type, value } = item
  if (typeof type !== 'string' || value === undefined || value === null) return refuse('invalid_input', { index })
  if (!KNOWN.has(type)) return refuse('unknown_modality', { index, got: type, known: MODALITIES })
  const modality = type as Modality
  if (!accepts.includes(modality)) return refuse('unsupported_modality', { index, got: type, accepts })
  const rule = RULES[modality]
  return rule.holds(value) ? undefined : refuse('invalid_value', { index, type, expected: rule.expected })
}

interface Rule {
  readonly expected: string
  readonly holds: (value: unknown) => boolean
}

const MEDIA: Rule = {
  expected: 'padded base64 without white space, an http(s) URL or a data URL',
  holds: (value) => typeof value === 'string' && isMedia(value),
}

const RULES: Readonly<Record<Modality, Rule>> = {
  text: { expected: 'a string', holds: (value) => typeof value === 'string' },
  image: MEDIA,
  audio: MEDIA,
  video: MEDIA,
  file: {
    expected: `${MEDIA.expected}, a JSON object or an array`,
    holds: (value) => (typeof value === 'string' ? isMedia(value) : typeof value === 'object'),
  },
}

function isMedia(value: string): boolean {
  if (/^https?:/i.test(value)) return isWebUrl(value)
  if (/^data:/i.test(value)) return isDataUrl(value)
  return isBase64(value)
}

function isWebUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && !/[\s\x00-\x1f\x7f]/.test(value) && URL.canParse(value)
}

const DATA_HEADER = /^data:(?:[\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[^;,\s]*)*(;base64)?$/i
const DATA_HEADER_CHARACTERS = 1024

function isDataUrl(value: string): boolean {
  const comma = value.slice(0, DATA_HEADER_CHARACTERS).indexOf(',')
  const header = comma === -1 ? null : DATA_HEADER.exec(value.slice(0, comma))
  if (header === null) return false
  const body = value.slice(comma + 1)
  return header[1] === undefined ? !/[\s\x00-\x1f\x7f]/.test(body) : isBase64(body)
}

/** Looks for the first foreign character instead of matching the whole: no backtracking on megabytes. */
export function isBase64(value: string): boolean {
  if (value.length === 0 || value.length % 4 !== 0) return false
  const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0
  return !/[^A-Za-z0-9+/]/.test(padding === 0 ? value : value.slice(0, -padding))
}
