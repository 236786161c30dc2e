/**
 * The shim behind `stdio-bus connect`: standard input and output on one side, a link to the bus on the other.
 *
 * It adds nothing to either stream; what it has to say goes to `say`. A full output stops the bus, a full bus stops the
 * input: nothing piles up here. Invariant: it ends, with the exit code of contract 6.10, and everything is written then.
 */
import type { Writable } from 'node:stream'
import type { BusError } from './errors.ts'
import type { HostPipes } from './host-pipes.ts'
import { Link, type LinkOptions } from './link.ts'

export interface ShimStreams extends HostPipes {
  /** A sentence for people. */
  readonly say: (sentence: string) => void
}

const FLUSH_TIMEOUT_MS = 2_000
/** A host that was killed closes its pipes one after the other. */
const LOOK_MS = 50

/** Runs until one side ends; resolves with the exit code. Fails only when there is no bus to begin with. */
export async function runShim(options: LinkOptions, streams: ShimStreams): Promise<number> {
  const { stdout, say } = streams
  let end: (error: BusError | undefined) => void = () => {}
  const ended = new Promise<BusError | undefined>((resolve) => {
    end = resolve
  })
  const link: Link = new Link(options, {
    received: (lines) => {
      if (!stdout.write(lines)) link.pause()
    },
    drained: () => streams.stdin.resume(),
    lost: (failed) => say(`the bus has gone (pending requests that failed: ${failed}); looking for it`),
    restored: () => say('the bus is back'),
    ended: end,
  })
  await link.open()
  join(link, streams)
  const error = await ended
  if (error !== undefined) say(error.message)
  await flushed(stdout)
  return error === undefined ? 0 : 1
}

function join(link: Link, streams: ShimStreams): void {
  const { stdin, stdout } = streams
  stdout.on('drain', () => link.resume())
  // Nobody reads our answers: what is still owed is owed to nobody.
  stdout.on('error', () => link.abandon())
  stdout.on('close', () => link.abandon())
  stdin.on('data', (chunk: Buffer) => {
    if (!link.write(chunk)) stdin.pause()
  })
  stdin.on('end', () => finish(link, streams))
  stdin.on('error', () => finish(link, streams))
}

/** The input has ended. A host that has gone is not one that waits for what it is owed. */
function finish(link: Link, { isReaderGone }: ShimStreams): void {
  if (!link.isOwed) return link.finish()
  const look = (): void => {
    if (isReaderGone()) link.abandon()
    else link.finish()
  }
  if (isReaderGone()) link.abandon()
  else setInterval(look, LOOK_MS).unref()
}

/** A host that does not read does not keep us. */
function flushed(stdout: Writable): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, FLUSH_TIMEOUT_MS).unref()
    stdout.write('', () => resolve())
  })
}
