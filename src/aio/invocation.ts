/**
 * Makes of a checked call what an adapter sends: the method as the agent spells it, and the trace fields it may have.
 *
 * Bare agents get no trace fields at all: they know only the plain JSON-RPC ones. A caller's own `_meta` travels on,
 * except what is addressed to the bus.
 */
import type { Invocation } from './adapter.ts'
import type { NamedAgent } from './agent-spec.ts'
import type { Envelope } from './envelope.ts'
import { joinName } from './names.ts'
import { type Ancestor, callKey } from './parents.ts'

export function invocationOf(
  agent: NamedAgent,
  envelope: Envelope,
  params: unknown,
  place: Ancestor,
  callerKey: string,
  giveTraceparent: () => string,
): Invocation {
  const { method, id, sessionId } = envelope
  const bare = agent.type !== 'mcp' && agent.methodStyle === 'bare'
  // Only what an agent can send back is worth a hash.
  const traceparent = bare && agent.type === 'stdio' ? '' : giveTraceparent()
  const { progressToken, 'stdio-bus/parent': _parent, ...given } = envelope.meta
  const trace = { traceparent, 'stdio-bus/trace_id': place.traceId, 'stdio-bus/call_id': callKey(place) }
  return {
    method,
    wireMethod: bare ? method : joinName(agent.name, method),
    params,
    notification: id === undefined,
    affinity: sessionId,
    meta: bare ? undefined : { ...given, ...trace },
    traceId: place.traceId,
    traceparent,
    progressToken: progressToken === undefined || id === undefined ? undefined : callKey(place),
    callerKey,
  }
}
