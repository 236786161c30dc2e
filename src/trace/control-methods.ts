/**
 * The trace questions of the control socket, for whoever assembles it: `traces.list|get|stats|export|tail`.
 *
 * An answer is passed on as the text it is: the thread that routes parses nothing of it.
 */
import { JsonText } from '../wire/ready-json.ts'
import type { QueryMethod } from './query.ts'
import type { TraceStore } from './store.ts'
import { tailItem } from './tail.ts'

/** What the control socket gives to a method. */
export interface ControlCall {
  readonly params: Readonly<Record<string, unknown>>
  emit(item: unknown): void
  onLeave(callback: () => void): void
}

export type TraceControlMethods = Readonly<Record<string, (call: ControlCall) => Promise<unknown>>>

const QUESTIONS: readonly QueryMethod[] = ['list', 'get', 'stats', 'export']

/** `refuse` makes the error that the socket answers a bad question with. */
export function traceControlMethods(
  store: TraceStore,
  refuse: (message: string, data: unknown) => Error,
): TraceControlMethods {
  const asks = QUESTIONS.map((method) => [
    `traces.${method}`,
    async ({ params }: ControlCall) => {
      const answer = await store.query(method, params)
      if ('fault' in answer) throw refuse(answer.fault.message, answer.fault.data)
      return new JsonText(answer.text)
    },
  ])
  return { ...Object.fromEntries(asks), 'traces.tail': (call: ControlCall) => follow(store, call) }
}

/** Answers when the asker has left, which is to say never. */
function follow(store: TraceStore, call: ControlCall): Promise<null> {
  const stop = store.follow((event) => call.emit(tailItem(event)))
  return new Promise((resolve) => {
    call.onLeave(() => {
      stop()
      resolve(null)
    })
  })
}
