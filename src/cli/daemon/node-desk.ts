/**
 * Where another node asks this one something that is no client's affair: what it has of a trace (contract 14.10).
 *
 * One line in, one line out. What is asked is short, what is answered is bounded, and anything else ends the stream.
 */
import { CLUSTER } from '../../cluster/limits.ts'
import type { Stream, StreamOwner } from '../../cluster/stream.ts'

export const TRACE_QUESTION = 'node::trace'

/** What this node has of the trace, as JSON; undefined: nothing, or more than may be told. */
export type TellTrace = (traceId: string) => Promise<string | undefined>

const MAX_QUESTION_BYTES = 1_024
const NEWLINE = 0x0a

export class NodeDesk implements StreamOwner {
  readonly #stream: Stream
  readonly #tellTrace: TellTrace
  readonly #gone: () => void
  #heard = Buffer.alloc(0)
  #isAsked = false
  #isOver = false

  constructor(stream: Stream, tellTrace: TellTrace, gone: () => void) {
    this.#stream = stream
    this.#tellTrace = tellTrace
    this.#gone = gone
  }

  received(bytes: Buffer): void {
    if (this.#isAsked) return
    this.#heard = Buffer.concat([this.#heard, bytes])
    const end = this.#heard.indexOf(NEWLINE)
    if (this.#heard.length > MAX_QUESTION_BYTES) return this.#end()
    if (end === -1) return
    this.#isAsked = true
    this.#answer(this.#heard.toString('utf8', 0, end)).catch(() => this.#end())
  }

  drained(): void {}

  ended(): void {
    this.#end()
  }

  async #answer(question: string): Promise<void> {
    const { id, method, params } = JSON.parse(question) as Record<string, unknown>
    const traceId = (params as Record<string, unknown> | null | undefined)?.['trace_id']
    if (method !== TRACE_QUESTION || typeof traceId !== 'string') return this.#end()
    const text = (await this.#tellTrace(traceId)) ?? 'null'
    if (this.#isOver) return
    const line = Buffer.from(`{"id":${JSON.stringify(id)},"result":${text}}\n`)
    if (line.length > CLUSTER.maxTraceBytes) return this.#end()
    this.#stream.write([line])
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stream.leave({ reason: 'closed' }, true)
    this.#gone()
  }
}
