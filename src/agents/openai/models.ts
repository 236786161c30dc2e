/**
 * The models the endpoint offers, for the choice in a session.
 *
 * An endpoint without a list is a normal case, not an error. Invariant: nobody waits longer than two seconds for it,
 * and what it may hold is bounded.
 */
import type { SessionConfigOption } from '@agentclientprotocol/sdk'
import { type Dispatcher, fetch } from 'undici'
import type { Config } from './config.ts'
import { isRecord } from './errors.ts'
import { type Body, EndpointLost, readText } from './event-stream.ts'
import { toHeaders, toUrl } from './request.ts'
import { Watch } from './watch.ts'

export interface Model {
  readonly id: string
  /** In tokens; 0 when the endpoint does not tell. */
  readonly contextLength: number
}

export const modelOptionId = 'model'

const askTimeoutMs = 2_000
const keptMs = { found: 300_000, missing: 30_000 }
const maxListBytes = 4 * 1024 * 1024
const maxModels = 1_000
const maxIdChars = 256

export class Models {
  readonly #config: Config
  readonly #dispatcher: Dispatcher
  #latest: readonly Model[] = []
  #known: { readonly until: number; readonly models: Promise<readonly Model[]> } | undefined

  constructor(config: Config, dispatcher: Dispatcher) {
    this.#config = config
    this.#dispatcher = dispatcher
  }

  /** The list, empty when the endpoint has none; asked for again after a while. */
  list(): Promise<readonly Model[]> {
    if (this.#known && this.#known.until > Date.now()) return this.#known.models
    const models = this.#ask()
    const asked = { until: Date.now() + keptMs.missing, models }
    this.#known = asked
    void models.then((found) => {
      if (found.length === 0) return
      this.#latest = found
      if (this.#known === asked) this.#known = { until: Date.now() + keptMs.found, models }
    })
    return models
  }

  /** From the last list, without asking: a turn must not wait for it. */
  contextLength(id: string): number {
    return this.#latest.find((model) => model.id === id)?.contextLength ?? 0
  }

  async #ask(): Promise<readonly Model[]> {
    const watch = new Watch(AbortSignal.timeout(askTimeoutMs), askTimeoutMs)
    const init = {
      headers: toHeaders(this.#config),
      signal: watch.signal,
      dispatcher: this.#dispatcher,
      redirect: 'manual' as const,
    }
    try {
      const response = await fetch(toUrl(this.#config, '/models'), init).catch((error: unknown) => {
        throw new EndpointLost('no list', { cause: error })
      })
      const text = await readText(response.body as Body | null, maxListBytes, watch)
      return response.ok ? parseModels(text) : []
    } catch (error) {
      if (error instanceof EndpointLost) return []
      throw error
    } finally {
      watch.stop()
    }
  }
}

const lengthFields = ['context_length', 'max_model_len', 'context_window', 'max_context_length', 'max_input_tokens']

/** The rows of a model list; whatever is not one is left out. */
export function parseModels(text: string): Model[] {
  const rows = rowsIn(text).filter(isRecord)
  const models = rows.flatMap((row): Model[] => {
    const id = row['id']
    if (typeof id !== 'string' || id === '' || id.length > maxIdChars) return []
    const length = lengthFields
      .map((field) => row[field])
      .find((value) => Number.isSafeInteger(value) && Number(value) > 0)
    return [{ id, contextLength: Number(length ?? 0) }]
  })
  return [...new Map(models.map((model) => [model.id, model])).values()].slice(0, maxModels)
}

function rowsIn(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    const rows = isRecord(value) ? value['data'] : value
    return Array.isArray(rows) ? rows : []
  } catch {
    return []
  }
}

/** The choice as ACP shows it; the current model is a choice even when the endpoint does not list it. */
export function toConfigOptions(models: readonly Model[], current: string): SessionConfigOption[] {
  if (models.length === 0) return []
  const ids = models.map((model) => model.id)
  const options = (ids.includes(current) ? ids : [current, ...ids]).map((id) => ({ value: id, name: id }))
  return [{ id: modelOptionId, name: 'Model', category: 'model', type: 'select', currentValue: current, options }]
}
