/**
 * Agents of other nodes, which an agent of this one calls (contract 14.10): their node is the gateway and records the call.
 *
 * The message goes as it came, with the trace and what is known of the parent beside it; what the other gateway answers is the
 * answer, and its place in the trace is the one that is told. There is no timer here: that of the other node runs. What wants
 * no answer goes as a request too, so that it counts as its caller's until it is known to have arrived; nobody is told.
 */
import { type Adapter, carefulListener, type Outcome } from './adapter.ts'
import { readAnswer } from './answers.ts'
import type { Envelope } from './envelope.ts'
import { fault } from './faults.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import { joinName } from './names.ts'
import type { CallCause, Exchange, ExchangeOptions, GatewayPort } from './port.ts'
import { byteLength } from './stdio-adapter.ts'

export interface FarCall {
  /** Through which the agent is reached. */
  readonly pool: string
  readonly envelope: Envelope
  readonly traceId: string | undefined
  readonly cause: CallCause
  readonly client: number | undefined
  /** The other gateway has given it a place. */
  placed(place: { readonly traceId: string; readonly callId?: number }): void
}

export function callFar(call: FarCall, port: GatewayPort, outcome: Outcome): ReturnType<Adapter> {
  const { pool, envelope, traceId, cause, client } = call
  const { agent, method, params, sessionId } = envelope
  const message = {
    jsonrpc: '2.0',
    method: joinName(agent, method),
    ...(params === undefined ? {} : { params }),
    ...(traceId === undefined ? {} : { trace_id: traceId }),
    ...(sessionId === undefined ? {} : { sessionId }),
  }
  const options: ExchangeOptions = { cause, ...(client === undefined ? {} : { client }) }
  const listener = carefulListener(outcome, {
    sent: () => {},
    received: (reply, bytes = byteLength(reply)) => {
      const { trace_id: issued, call_id: callId } = reply
      if (typeof issued === 'string')
        call.placed({ traceId: issued, ...(typeof callId === 'number' ? { callId } : {}) })
      const partial = partialIn(reply)
      if (partial !== undefined) return outcome.partial(partial.outputs, partial.extra)
      port.finish(exchange)
      const answer = readAnswer(reply)
      if (answer !== undefined) return outcome.settle(answer, { bytes, raw: reply })
      outcome.fail(fault('agent_invalid_response', { agent, cause: 'it has neither result nor error' }))
    },
    failed: (error) => outcome.fail(error),
  })
  const exchange: Exchange = port.request(pool, message, options, listener)
  return () => exchange.cancel()
}

/** A part as the other gateway tells it; what belongs to its line only stays behind. */
function partialIn({ method, params }: JsonObject): { outputs: readonly unknown[]; extra: JsonObject } | undefined {
  if (method === undefined) return undefined
  const { id: _id, seq: _seq, partial: _partial, outputs, ...extra } = objectOr(params)
  return { outputs: Array.isArray(outputs) ? outputs : [], extra }
}
