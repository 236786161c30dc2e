/**
 * Carries protocol messages over a pair of byte streams, through the session id router.
 *
 * Splitting and parsing are the SDK's. The end of the input is held back until what was asked has been answered, or for
 * `graceMs`. Invariant: nothing but protocol lines is written, one write each, and a full pipe holds the writer.
 */
import { Readable, type Writable } from 'node:stream'
import { type AnyMessage, ndJsonStream, type Stream } from '@agentclientprotocol/sdk'
import { SessionIdRouter } from './session-id-router.ts'

export interface StdioStream {
  readonly stream: Stream
  /** Resolves when every request that came in is answered, or after `graceMs`. */
  settled(graceMs: number): Promise<void>
}

/** `onEnd` is called when the input has ended, before the connection learns of it. */
export function openStdio(input: Readable, output: Writable, graceMs: number, onEnd: () => void): StdioStream {
  const router = new SessionIdRouter()
  let owed = 0
  let answered = () => {}

  const write = async (chunk: string | Uint8Array): Promise<void> => {
    if (!output.write(chunk)) await drained(output)
  }
  const settled = async (limitMs: number): Promise<void> => {
    if (owed === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs)
      answered = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
  const lines = ndJsonStream(
    new WritableStream({ write }),
    Readable.toWeb(input) as unknown as ReadableStream<Uint8Array>,
  )
  const inbound = new TransformStream<AnyMessage, AnyMessage>({
    transform: (message, controller) => {
      if ('method' in message && 'id' in message) owed++
      controller.enqueue(router.inbound(message))
    },
    flush: async () => {
      onEnd()
      await settled(graceMs)
    },
  })
  const writable = new WritableStream<AnyMessage>({
    write: async (message) => {
      await write(`${JSON.stringify(router.outbound(message))}\n`)
      if (!('method' in message) && --owed === 0) answered()
    },
  })
  return { stream: { readable: lines.readable.pipeThrough(inbound), writable }, settled }
}

function drained(output: Writable): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      output.off('drain', end).off('close', end)
      resolve()
    }
    output.once('drain', end).once('close', end)
  })
}
