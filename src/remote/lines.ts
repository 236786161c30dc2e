/**
 * Another bus over a socket: lines go to and fro as they are, once `bus::open` has said who comes, to which pool, and
 * through which buses (contract 6.3, 9.3, 11.6).
 *
 * Nothing of it stands in the way of a message: the socket itself is the stream. Ways that become known later are told
 * without asking for an answer; a bus that finds itself among them says so in an error without an id, and closes the
 * connection.
 */
import type { Socket } from 'node:net'
import { dialSocket } from '../host/dial.ts'
import { NEWLINE } from '../wire/frame.ts'
import { LOOP } from '../wire/via.ts'
import { explainFailure, socketOf } from './address.ts'
import { BROKEN_OFF, type Connect, type Connection, type Upstream, UpstreamFailure, type Via } from './upstream.ts'

/** The answers to the opening are short. */
const MAX_ANSWER_BYTES = 64 * 1024
const OPEN_ID = 'stdio-bus/remote/open'

/** What a bus says that does not want us; what else it says is not repeated. */
const REFUSALS: Readonly<Record<string, { readonly why: string; readonly isRefusal?: true }>> = {
  unauthenticated: { why: 'it does not accept the token, or wants one', isRefusal: true },
  not_allowed: { why: 'the token has no right to that pool', isRefusal: true },
  loop_detected: { why: LOOP, isRefusal: true },
  unknown_pool: { why: 'it has no such pool' },
  too_many_clients: { why: 'it has as many clients as it takes' },
  keys_unavailable: { why: 'it cannot judge the token now' },
  shutting_down: { why: 'it is shutting down' },
}
const NO_BUS = { why: 'it does not answer bus::open as a bus does: tcp, tls and unix lead to another bus' }

export const connectLines: Connect = async (upstream, { vias, signal, lost }) => {
  const endMs = performance.now() + upstream.connectTimeoutMs
  const socket = await dialSocket(socketOf(upstream), upstream.connectTimeoutMs, signal).catch((cause) => {
    throw explainFailure(cause)
  })
  const connection = new LineConnection(socket, upstream)
  await connection.open(vias, { timeoutMs: Math.max(1, endMs - performance.now()), signal })
  socket.on('error', (error) => lost(explainFailure(error)))
  // It has said everything, and hears no more.
  socket.once('end', () => socket.end())
  return connection
}

class LineConnection implements Connection {
  readonly stream: Socket
  readonly #upstream: Upstream

  constructor(socket: Socket, upstream: Upstream) {
    this.stream = socket
    this.#upstream = upstream
  }

  passOn(via: Via): void {
    this.stream.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'bus::open', params: { via: this.#chain(via) } })}\n`)
  }

  /** Says who comes, and waits until all of it is accepted. */
  async open(
    vias: readonly Via[],
    within: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { pool, token } = this.#upstream
    const openings = [{ pool, token, via: this.#chain([]) }, ...vias.map((via) => ({ via: this.#chain(via) }))]
    const lines = openings.map((params, index) =>
      JSON.stringify({ jsonrpc: '2.0', id: `${OPEN_ID}/${index}`, method: 'bus::open', params }),
    )
    const answers = new Answers(this.stream, openings.length)
    this.stream.write(`${lines.join('\n')}\n`)
    await answers.heard(within)
  }

  #chain(via: Via): Via {
    const { busId } = this.#upstream
    return busId === undefined ? via : [...via, busId]
  }
}

/** Hears the answers to the opening; what comes behind them stays in the socket. */
class Answers {
  readonly #socket: Socket
  #left: number
  #held: Buffer = Buffer.alloc(0)

  constructor(socket: Socket, count: number) {
    this.#socket = socket
    this.#left = count
  }

  heard({ timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<void> {
    const socket = this.#socket
    return new Promise((resolve, reject) => {
      const settle = (failure?: UpstreamFailure): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', givenUp)
        for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener)
        socket.pause()
        if (failure === undefined) return resolve()
        socket.on('error', () => {}).destroy()
        reject(failure)
      }
      const listeners = {
        data: (chunk: Buffer) => {
          const verdict = this.#hear(chunk)
          if (verdict !== undefined) settle(verdict === 'done' ? undefined : verdict)
        },
        error: (error: Error) => settle(explainFailure(error)),
        close: () => settle(new UpstreamFailure(BROKEN_OFF)),
        end: () => settle(new UpstreamFailure(BROKEN_OFF)),
      }
      const givenUp = (): void => settle(new UpstreamFailure('it was ended before it was connected'))
      const timer = setTimeout(() => settle(new UpstreamFailure('it does not answer bus::open')), timeoutMs)
      signal.addEventListener('abort', givenUp)
      for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener)
    })
  }

  #hear(chunk: Buffer): UpstreamFailure | 'done' | undefined {
    this.#held = Buffer.concat([this.#held, chunk])
    for (let end = this.#held.indexOf(NEWLINE); end !== -1; end = this.#held.indexOf(NEWLINE)) {
      const refusal = refusalIn(this.#held.toString('utf8', 0, end))
      this.#held = this.#held.subarray(end + 1)
      if (refusal !== undefined) return refusal
      if (--this.#left > 0) continue
      this.#socket.pause()
      if (this.#held.length > 0) this.#socket.unshift(this.#held)
      return 'done'
    }
    return this.#held.length > MAX_ANSWER_BYTES ? new UpstreamFailure(NO_BUS.why) : undefined
  }
}

function refusalIn(line: string): UpstreamFailure | undefined {
  let answer: { id?: unknown; result?: unknown; error?: { data?: { reason?: unknown } } } | null
  try {
    answer = JSON.parse(line)
  } catch (cause) {
    return new UpstreamFailure(NO_BUS.why, { cause })
  }
  if (answer?.result !== undefined) return undefined
  const reason = String(answer?.error?.data?.reason)
  const { why, isRefusal } = (Object.hasOwn(REFUSALS, reason) ? REFUSALS[reason] : undefined) ?? {
    ...NO_BUS,
    isRefusal: undefined,
  }
  return new UpstreamFailure(why, { isRefusal: isRefusal === true })
}
