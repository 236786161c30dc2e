/**
 * Reads server-sent events from the body of a response, and remembers where a torn stream can be taken up again.
 *
 * The text must be UTF-8 and an event is bounded; whatever is not ends the reading with an error. An event that is torn in
 * the middle never comes out.
 */
import { TextDecoder } from 'node:util'
import { createParser } from 'eventsource-parser'
import { RemoteFault } from '../faults.ts'

/** Where a stream was when it broke. */
export interface Bookmark {
  lastEventId: string | undefined
  retryMs: number | undefined
}

/** A server that says less would have itself asked without a pause, and one that says more for ever. */
const MIN_RETRY_MS = 50
const MAX_RETRY_MS = 30_000

/** The data of every message of the stream. */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  bookmark: Bookmark,
): AsyncGenerator<Buffer, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const events: { readonly id: string | undefined; readonly data: string; readonly isMessage: boolean }[] = []
  let isTooLarge = false
  const parser = createParser({
    maxBufferSize: maxBytes + 1_024,
    onEvent: ({ id, data, event }) => events.push({ id, data, isMessage: event === undefined || event === 'message' }),
    onRetry: (retryMs) => {
      bookmark.retryMs = Math.min(Math.max(retryMs, MIN_RETRY_MS), MAX_RETRY_MS)
    },
    onError: ({ type }) => {
      isTooLarge ||= type === 'max-buffer-size-exceeded'
    },
  })
  let isLineEnded = false
  for await (const chunk of body) {
    const text = decode(decoder, chunk)
    if (text === '') continue
    // Whether a line feed belongs to a carriage return before it must not be waited for: an answer may end so.
    const rest = isLineEnded && text.startsWith('\n') ? text.slice(1) : text
    isLineEnded = text.endsWith('\r')
    parser.feed(isLineEnded ? `${rest}\n` : rest)
    for (const { id, data, isMessage } of events.splice(0)) {
      if (id !== undefined && id !== '') bookmark.lastEventId = id
      if (!isMessage || data.trim() === '') continue
      const bytes = Buffer.from(data)
      if (bytes.length > maxBytes) throw new RemoteFault('upstream_too_large')
      yield bytes
    }
    if (isTooLarge) throw new RemoteFault('upstream_too_large')
  }
}

function decode(decoder: TextDecoder, chunk: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: true })
  } catch {
    throw new RemoteFault('upstream_bad_response', { problem: 'it is not UTF-8' })
  }
}
