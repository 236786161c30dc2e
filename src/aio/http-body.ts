/**
 * Reads the body of an HTTP answer, whole or as server-sent events, and never holds more than it was allowed to.
 */
import { createParser } from 'eventsource-parser'
import type { Response } from 'undici'
import { piecesOf, type Turns } from './turns.ts'

/** The answer is longer than the agent may make it. */
export interface Overlong {
  readonly limitBytes: number
}

const STREAM_END = '[DONE]'

export function isEventStream(response: Response): boolean {
  return /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')
}

export async function readText(response: Response, limitBytes: number): Promise<string | Overlong> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunksOf(response)) {
    bytes += chunk.length
    if (bytes > limitBytes) return { limitBytes }
    parts.push(chunk)
  }
  return Buffer.concat(parts).toString()
}

/** The data of each event, without the end mark that some servers send; a stream without pause leaves others their turn. */
export async function* readEvents(
  response: Response,
  limitBytes: number,
  turns: Turns,
): AsyncGenerator<string | Overlong> {
  const events: (string | Overlong)[] = []
  const parser = createParser({
    maxBufferSize: limitBytes,
    onEvent: ({ data }) => {
      if (data === STREAM_END) return
      events.push(Buffer.byteLength(data) > limitBytes ? { limitBytes } : data)
    },
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') events.push({ limitBytes })
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of chunksOf(response)) {
    for (const piece of piecesOf(chunk)) {
      await turns.over()
      parser.feed(decoder.decode(piece, { stream: true }))
      for (const event of events.splice(0)) {
        yield event
        await turns.over()
      }
    }
  }
  // A last event may lack its empty line.
  parser.feed('\n\n')
  yield* events
}

async function* chunksOf(response: Response): AsyncGenerator<Uint8Array> {
  if (response.body !== null) yield* response.body as AsyncIterable<Uint8Array>
}
