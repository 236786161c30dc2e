/**
 * What can be asked of a bus over its control socket, and who answers it (contract 8.6).
 *
 * It decides nothing: it knows which part of the bus has the answer, and says in a sentence what is missing where none has.
 */
import type { BusConfig } from '../../config/bus-config.ts'
import { ControlError, type ControlMethods } from '../../console/control-server.ts'
import { JsonText } from '../../wire/ready-json.ts'
import { VERSION } from '../version.ts'
import { type Administered, administrationMethods } from './administration.ts'
import type { ClusterRoom } from './cluster-room.ts'
import type { Reloaded } from './embedding.ts'
import type { GatewayRoom } from './gateway-room.ts'
import type { StatusDetails } from './status-details.ts'
import { askNodes } from './trace-of-nodes.ts'
import type { WebRoom } from './web-room.ts'

const refuseTraces = (): never => {
  throw new ControlError(
    'this bus keeps no traces: give its configuration an "aio" section, agents, or a pool with "trace": true',
  )
}

const NO_TRACES: ControlMethods = Object.fromEntries(
  ['list', 'get', 'stats', 'export', 'tail'].map((method) => [`traces.${method}`, refuseTraces]),
)

/** The bus, as far as its control socket asks it; what is undefined is not there. */
export interface Controlled extends Administered {
  readonly config: () => BusConfig
  readonly details: StatusDetails
  readonly room: () => GatewayRoom | undefined
  readonly cluster: () => ClusterRoom | undefined
  readonly web: () => WebRoom | undefined
  reload(): Promise<Reloaded>
}

export function controlMethods(bus: Controlled): ControlMethods {
  return {
    status: ({ params }) => bus.details.take({ mayWait: params['wait'] === true }),
    reload: () => bus.reload(),
    cluster: () => {
      const cluster = bus.cluster()
      if (cluster !== undefined) return cluster.status
      throw new ControlError('this bus is alone: its configuration has no "cluster"')
    },
    console: ({ params }) => consoleLink(bus, params['role']),
    ...administrationMethods(bus),
    ...(bus.room()?.controlMethods() ?? NO_TRACES),
    ...(bus.cluster() === undefined ? {} : traceMethodsOfNodes(bus)),
  }
}

/** Of a node, a trace is that of all of them (contract 14.10). */
function traceMethodsOfNodes(bus: Controlled): ControlMethods {
  const alone = bus.room()?.controlMethods() ?? NO_TRACES
  const ask = (method: 'get' | 'export'): ControlMethods[string] => {
    const name = `traces.${method}`
    return async (call) => {
      const text = await askTraceOfNodes(bus, method, call.params)
      return text === undefined ? alone[name]!(call) : new JsonText(text)
    }
  }
  return { 'traces.get': ask('get'), 'traces.export': ask('export') }
}

/** Undefined: this bus is no node, or what is asked is no matter of several. */
export async function askTraceOfNodes(
  bus: Pick<Controlled, 'cluster' | 'room' | 'config'>,
  method: string,
  params: unknown,
): Promise<string | undefined> {
  const cluster = bus.cluster()
  if (cluster === undefined) return undefined
  const { aio, cluster: own } = bus.config()
  const { payloads = false, compat = false } = aio.otlp ?? {}
  const nodes = {
    node: own!.node,
    otlp: { version: VERSION, payloads, compat },
    own: async (traceId: string, scope: object) => bus.room()?.ownTrace(traceId, scope),
    others: (traceId: string) => cluster.tracesOf(traceId),
  }
  return askNodes(nodes, method, params)
}

/** A link to the console for whoever can open the control socket (contract 15.2). */
function consoleLink({ web }: Controlled, name: unknown): { readonly url: string } {
  const role = name === undefined ? 'admin' : (['admin', 'observer'] as const).find((each) => each === name)
  if (role === undefined) throw new ControlError('role is admin or observer')
  const url = web()?.consoleLink(role)
  if (url !== undefined) return { url }
  throw new ControlError('this bus has no web door with a console: start it with --http 127.0.0.1:8080')
}
