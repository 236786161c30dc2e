/**
 * Agents that are long-lived workers and speak JSON-RPC by lines, plain or namespaced.
 *
 * Any method goes to the agent as it is; the agent's own error is its answer. A notification is done once written.
 */
import { type Adapter, agentMessage, carefulListener, exchangeOptions } from './adapter.ts'
import type { StdioAgent } from './agent-spec.ts'
import { readAnswer, readPartial } from './answers.ts'
import { fault } from './faults.ts'
import type { Exchange, GatewayPort } from './port.ts'

export function stdioAdapter(agent: StdioAgent, port: GatewayPort): Adapter {
  return (invocation, outcome) => {
    const message = agentMessage(invocation)
    const options = exchangeOptions(invocation)
    if (invocation.notification) {
      port.notify(agent.pool, message, { ...options, sent: (worker) => outcome.sent(worker) })
      outcome.settle({ result: null }, { bytes: 0 })
      return () => {}
    }
    const listener = carefulListener(outcome, {
      sent: (worker) => outcome.sent(worker),
      received: (reply, bytes = byteLength(reply)) => {
        const partial = readPartial(reply)
        if (partial !== undefined) return outcome.partial(partial)
        port.finish(exchange)
        const answer = readAnswer(reply)
        if (answer !== undefined) return outcome.settle(answer, { bytes, raw: reply })
        outcome.fail(fault('agent_invalid_response', { agent: agent.name, cause: 'it has neither result nor error' }))
      },
      failed: (error) => outcome.fail(error),
    })
    const exchange: Exchange = port.request(agent.pool, message, options, listener)
    return () => exchange.cancel()
  }
}

export function byteLength(message: unknown): number {
  return Buffer.byteLength(JSON.stringify(message) ?? '')
}
