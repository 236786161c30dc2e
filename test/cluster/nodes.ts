/** Starts nodes of one cluster as processes, and waits until they know each other. */
import { type Bus, startBus } from '../support/bus.ts'
import { Nats, startNats } from '../support/nats.ts'
import { eventually } from '../support/waiting.ts'

export interface NodeSpec {
  readonly pools?: readonly object[]
  /** More of the section `cluster`, and of the file. */
  readonly cluster?: object
  readonly config?: object
  readonly args?: readonly string[]
  readonly doors?: readonly ('unix' | 'tcp' | 'http')[]
  readonly env?: Record<string, string>
}

export function clusterConfig(nats: Nats | string, node: string, spec: NodeSpec = {}): object {
  const url = typeof nats === 'string' ? nats : nats.url
  const { pools = [], cluster = {}, config = {} } = spec
  return { pools, cluster: { nats: [url], name: 'team', node, ...cluster }, ...config }
}

export async function startNode(nats: Nats | string, node: string, spec: NodeSpec = {}): Promise<Bus> {
  const { args = [], doors = ['unix'], env = {} } = spec
  return startBus({ config: clusterConfig(nats, node, spec), args, doors, env })
}

/** The node has heard what it needs: a request for the pool is answered by no error of the bus. */
export async function untilReachable(bus: Bus, pool: string, timeoutMs = 8_000): Promise<void> {
  const client = await bus.connect()
  let id = 0
  await eventually(
    `the pool ${pool} to be reachable`,
    async () => {
      const answer = await client.ask({ jsonrpc: '2.0', id: `probe ${++id}`, method: 'probe', pool })
      return answer.result === undefined ? undefined : true
    },
    timeoutMs,
  )
  client.close()
}

export const ECHO = { id: 'echo', agent: 'echo' } as const

/** A broker, a node that only lets clients in, and one that has a pool. */
export async function startPair(far: NodeSpec = { pools: [ECHO] }, near: NodeSpec = {}) {
  const nats = await startNats()
  const [a, b] = await Promise.all([startNode(nats, 'n1', near), startNode(nats, 'n2', far)])
  const { id } = (far.pools?.[0] ?? ECHO) as { id: string }
  await untilReachable(a, id)
  return { nats, a, b }
}

export { Nats }
