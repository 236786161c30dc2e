/**
 * The rest of a body that nobody wants (contract 10.3, 10.4): it is thrown away as it comes, for a while, before its connection ends.
 *
 * A connection that is closed while its peer still sends is torn down together with the answer that says why. Nothing of the rest
 * is kept or looked at, and whoever goes on sending is cut off.
 */
import type { IncomingMessage } from 'node:http'

const SILENCE_MS = 500
const LONGEST_MS = 2_000
const MAX_BYTES = 64 * 1024 * 1024

/** `over` is called once: all of it has come, or enough was waited for. */
export function discardRest(request: IncomingMessage, over: () => void): void {
  let bytes = 0
  const done = (): void => {
    clearTimeout(silence)
    clearTimeout(end)
    request.off('data', drop).off('end', done).off('close', done)
    over()
  }
  const drop = (part: Buffer): void => {
    bytes += part.length
    if (bytes > MAX_BYTES) return done()
    silence.refresh()
  }
  const silence = setTimeout(done, SILENCE_MS).unref()
  const end = setTimeout(done, LONGEST_MS).unref()
  request.on('data', drop).on('end', done).on('close', done).resume()
}
