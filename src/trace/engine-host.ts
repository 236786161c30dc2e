/**
 * Carries requests to the engine, on a thread of its own or in this one, and matches the replies.
 *
 * A host never throws: an engine that cannot be reached is an error reply like any other.
 */
import { Worker } from 'node:worker_threads'
import {
  describeFailure,
  Engine,
  type EngineCalls,
  type EngineError,
  type EngineOp,
  type EngineReply,
  type EngineRequest,
} from './engine.ts'

export type Outcome<T> = { readonly value: T } | { readonly error: EngineError }

export interface EngineHost {
  ask<Op extends EngineOp>(op: Op, params: EngineCalls[Op]['params']): Promise<Outcome<EngineCalls[Op]['yields']>>
  /** Ends the thread, whatever it is doing. */
  end(): Promise<void>
}

/** An engine in the caller's own thread: for tests, and where no thread can be had. What is sent is copied, as a thread would. */
export function inlineHost(engine = new Engine()): EngineHost {
  let seq = 0
  return {
    async ask(op, params) {
      try {
        const reply = await engine.serve(structuredClone({ seq: ++seq, op, params }) as EngineRequest)
        return outcomeOf(reply) as never
      } catch (error) {
        return { error: describeFailure(error) }
      }
    },
    end: async () => {},
  }
}

/** Compiled, the entry is a `.js` file beside this one; a runtime that strips types takes the source itself. */
function entryOf(moduleUrl: string): URL {
  return new URL(moduleUrl.endsWith('.ts') ? './store-thread.ts' : './store-thread.js', moduleUrl)
}

/** An engine on its own thread, so that a slow disk stalls nobody's call. */
export function threadHost(entry: URL = entryOf(import.meta.url)): EngineHost {
  const waiting = new Map<number, (outcome: Outcome<unknown>) => void>()
  let seq = 0
  let broken: EngineError | undefined
  const worker = new Worker(entry, { name: 'trace-store', stdout: false, stderr: false })
  worker.unref()

  const fail = (error: unknown): void => {
    broken ??= describeFailure(error)
    for (const settle of waiting.values()) settle({ error: broken })
    waiting.clear()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('the thread of the trace store has ended')))
  worker.on('message', (reply: EngineReply) => {
    waiting.get(reply.seq)?.(outcomeOf(reply))
    waiting.delete(reply.seq)
    if (waiting.size === 0) worker.unref()
  })

  return {
    ask(op, params) {
      if (broken !== undefined) return Promise.resolve({ error: broken })
      const request = { seq: ++seq, op, params }
      return new Promise((settle) => {
        try {
          worker.postMessage(request)
        } catch (error) {
          // What cannot be copied to a thread is refused before it is sent.
          return settle({ error: describeFailure(error) })
        }
        // A thread that owes a reply keeps the process alive; an idle one does not.
        worker.ref()
        waiting.set(request.seq, settle as (outcome: Outcome<unknown>) => void)
      })
    },
    async end() {
      await worker.terminate()
    },
  }
}

function outcomeOf(reply: EngineReply): Outcome<unknown> {
  return 'error' in reply ? { error: reply.error } : { value: reply.value }
}
