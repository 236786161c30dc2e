/**
 * Reads server-sent events from a response body, a batch per read.
 *
 * It parses no JSON and knows no provider. A last event without its blank line counts, although the standard drops it.
 * Invariant: at most `maxEventChars` of an unfinished event are held.
 */
import { createParser } from 'eventsource-parser'
import type { Watch } from './watch.ts'

/** The body of a response, as `fetch` gives it. */
export interface Body {
  getReader(): BodyReader
}

export interface BodyReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
}

/** The endpoint could not be reached, broke off, or went beyond a bound; the cause is the reason. */
export class EndpointLost extends Error {
  override name = 'EndpointLost'
}

export const maxEventChars = 16 * 1024 * 1024

/** How long a connection may take to end by itself after its last event, so that it can be used again. */
const graceMs = 200

/** The data of every event; stop early and the connection is given a moment, then closed. */
export async function* readEvents(body: Body, watch: Watch): AsyncGenerator<string[], void> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let batch: string[] = []
  let overflowed = false
  const parser = createParser({
    maxBufferSize: maxEventChars,
    onEvent: (event) => batch.push(event.data),
    onError: (error) => {
      overflowed ||= error.type === 'max-buffer-size-exceeded'
    },
  })
  let ended = false
  try {
    while (!ended) {
      const read = await readBytes(reader, watch)
      ended = read.done
      parser.feed(read.done ? `${decoder.decode()}\n\n` : decoder.decode(read.value, { stream: true }))
      if (overflowed) throw new EndpointLost(`an event of more than ${maxEventChars} characters`)
      if (batch.length > 0) yield batch
      batch = []
    }
  } finally {
    if (ended) watch.stop()
    else if (overflowed) watch.abort()
    else void settle(reader, watch)
  }
}

/** The whole body as text, at most `maxBytes` of it; the rest is not read. */
export async function readText(body: Body | null, maxBytes: number, watch: Watch): Promise<string> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  for (let bytes = 0; bytes < maxBytes; ) {
    const read = await readBytes(reader, watch)
    if (read.done) return text + decoder.decode()
    bytes += read.value!.length
    text += decoder.decode(read.value, { stream: true })
  }
  watch.abort()
  return text.slice(0, maxBytes)
}

async function readBytes(reader: BodyReader, watch: Watch): ReturnType<BodyReader['read']> {
  try {
    return await watch.wait(reader.read())
  } catch (error) {
    throw new EndpointLost('the connection broke', { cause: error })
  }
}

async function settle(reader: BodyReader, watch: Watch): Promise<void> {
  watch.stop()
  const timer = setTimeout(watch.abort, graceMs).unref()
  try {
    while (!(await reader.read()).done);
  } catch {
    // The connection is of no use any more; that is all there is to know.
  } finally {
    clearTimeout(timer)
  }
}
