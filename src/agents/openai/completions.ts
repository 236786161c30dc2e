/**
 * Asks the endpoint and opens its answer: retries, learns which fields a model refuses, words what went wrong.
 *
 * It reads no answer and keeps no conversation. Invariant: a retry happens only before anything was streamed,
 * and a cancel ends any waiting at once.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Dispatcher, fetch, type Response } from 'undici'
import { isCompletion } from './chunk.ts'
import type { Config } from './config.ts'
import { detailOf, httpMessage, isRecord, messageIn } from './errors.ts'
import { type Body, EndpointLost, readEvents, readText } from './event-stream.ts'
import { isOverflow } from './overflow.ts'
import { type Redact, redactor, toLine } from './redact.ts'
import { type Ask, learn, type Quirk, shownUrl, toBody, toHeaders, toUrl } from './request.ts'
import { isRetryable, retryDelayMs } from './retry.ts'
import { Watch } from './watch.ts'

/** An answer that has begun, or the message that replaces it. */
export type Opened =
  | { readonly kind: 'stream'; readonly events: AsyncGenerator<string[], void> }
  | { readonly kind: 'whole'; readonly completion: Record<string, unknown> }
  | {
      readonly kind: 'failed'
      readonly message: string
      /** The conversation was too long for the model. */
      readonly isOverflow: boolean
    }

type Refused = { readonly status: number; readonly body: string; readonly retryAfter: string | null }

const maxRefusalBytes = 64 * 1024
const maxWholeBytes = 16 * 1024 * 1024

export class Completions {
  readonly #config: Config
  readonly #dispatcher: Dispatcher
  readonly #redact: Redact
  readonly #quirks = new Map<string, Set<Quirk>>()

  constructor(config: Config, dispatcher: Dispatcher) {
    this.#config = config
    this.#dispatcher = dispatcher
    this.#redact = redactor(config)
  }

  /** Throws `EndpointLost` when the endpoint cannot be reached, an `AbortError` when the wait is cancelled. */
  async open(ask: Ask, signal: AbortSignal): Promise<Opened> {
    for (let attempt = 0; ; ) {
      const body = toBody(this.#config, ask, this.#quirksOf(ask.model))
      const watch = new Watch(signal, this.#config.timeoutMs)
      const response = await this.#send(body, watch)
      if (response.ok) return this.#accept(response, watch)
      const refused = await refusal(response, watch)
      const quirk = learn(refused.status, refused.body, body)
      if (quirk !== undefined) {
        this.#quirksOf(ask.model).add(quirk)
        continue
      }
      const delayMs = this.#delayMs(refused, attempt++)
      if (delayMs === undefined) {
        const failed = this.#fail(refused.status, detailOf(refused.body, this.#redact))
        return { ...failed, isOverflow: isOverflow(refused.status, refused.body) }
      }
      await sleep(delayMs, undefined, { signal })
    }
  }

  async #send(body: Record<string, unknown>, watch: Watch): Promise<Response> {
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...toHeaders(this.#config) },
      body: JSON.stringify(body),
      signal: watch.signal,
      dispatcher: this.#dispatcher,
      // A redirect would carry the configured headers to a host nobody named.
      redirect: 'manual' as const,
    }
    try {
      return await watch.wait(fetch(toUrl(this.#config, '/chat/completions'), init))
    } catch (error) {
      watch.stop()
      throw new EndpointLost('the request failed', { cause: error })
    }
  }

  async #accept(response: Response, watch: Watch): Promise<Opened> {
    const type = response.headers.get('content-type') ?? ''
    const body = response.body as Body | null
    if (body !== null && (type === '' || /^text\/event-stream\b/i.test(type))) {
      return { kind: 'stream', events: readEvents(body, watch) }
    }
    const isJson = /^application\/(.+\+)?json\b/i.test(type)
    const text = await readText(body, isJson ? maxWholeBytes : 0, watch)
    watch.stop()
    return this.#readWhole(response.status, type, isJson ? text : '')
  }

  #readWhole(status: number, type: string, text: string): Opened {
    const completion = parse(text)
    if (completion && isCompletion(completion)) return { kind: 'whole', completion }
    const error = completion?.['error'] ? messageIn(completion) : undefined
    const gave = type === '' ? 'no content' : toLine(this.#redact(type), 100)
    return this.#fail(
      status,
      error ? toLine(this.#redact(error)) : `It answered with ${gave} instead of an event stream.`,
    )
  }

  #delayMs(refused: Refused, attempt: number): number | undefined {
    if (!isRetryable(refused.status) || attempt >= this.#config.maxRetries) return undefined
    return retryDelayMs(attempt, refused.retryAfter, Date.now(), Math.random())
  }

  #fail(status: number, detail: string | undefined): Extract<Opened, { kind: 'failed' }> {
    const message = httpMessage(shownUrl(this.#config), { status, detail })
    return { kind: 'failed', message, isOverflow: isOverflow(status, detail ?? '') }
  }

  #quirksOf(model: string): Set<Quirk> {
    const quirks = this.#quirks.get(model) ?? new Set()
    this.#quirks.set(model, quirks)
    return quirks
  }
}

async function refusal(response: Response, watch: Watch): Promise<Refused> {
  try {
    const body = await readText(response.body as Body | null, maxRefusalBytes, watch)
    return { status: response.status, body, retryAfter: response.headers.get('retry-after') }
  } finally {
    watch.stop()
  }
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
