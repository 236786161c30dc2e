/**
 * What whoever prompts wishes for one turn, in `_meta["stdio-bus/sampling"]`: how long, how free, where to stop.
 *
 * It comes from a peer: what does not fit is left out. It never lifts a limit of the configuration.
 */
import { isRecord } from './errors.ts'

export interface Wishes {
  readonly maxTokens?: number
  readonly temperature?: number
  readonly stop?: readonly string[]
}

const KEY = 'stdio-bus/sampling'
/** More than that no endpoint takes. */
const MAX_STOPS = 4

export function readWishes(meta: unknown): Wishes {
  const given = isRecord(meta) ? meta[KEY] : undefined
  if (!isRecord(given)) return {}
  const { maxTokens, temperature, stopSequences } = given
  const stop = Array.isArray(stopSequences) ? stopSequences.filter((each) => typeof each === 'string') : []
  return {
    ...(Number.isSafeInteger(maxTokens) && (maxTokens as number) > 0 ? { maxTokens: maxTokens as number } : {}),
    ...(Number.isFinite(temperature) ? { temperature: temperature as number } : {}),
    ...(stop.length === 0 ? {} : { stop: stop.slice(0, MAX_STOPS) }),
  }
}
