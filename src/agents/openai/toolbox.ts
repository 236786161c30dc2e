/**
 * All tools of one session: which servers they come from, and under which name the model knows them.
 *
 * It runs nothing by itself. A server that cannot be reached is reported and left out.
 * Invariant: function names are unique, and each leads to exactly one tool of one server.
 */
import type { McpServer } from '@agentclientprotocol/sdk'
import { reasonOf } from './errors.ts'
import type { McpConnection, McpOptions, McpTool } from './mcp-server.ts'
import type { FunctionTool } from './request.ts'
import { nameFunctions } from './tool-names.ts'

/** A tool as the model may call it. */
export interface OfferedTool {
  readonly functionName: string
  readonly server: McpConnection
  readonly tool: McpTool
}

/** A server that is not there, and why. */
export interface LostServer {
  readonly name: string
  readonly reason: string
}

/** Endpoints refuse requests with more functions than this. */
export const maxFunctions = 128
export const maxServers = 32

export type Connect = (server: McpServer, options: McpOptions) => Promise<McpConnection>

export class Toolbox {
  readonly functions: readonly FunctionTool[]
  readonly lost: readonly LostServer[]
  readonly #offered: ReadonlyMap<string, OfferedTool>
  readonly #servers: readonly McpConnection[]

  constructor(servers: readonly McpConnection[], lost: readonly LostServer[]) {
    const all = servers.flatMap((server) => server.tools.map((tool) => ({ server, tool })))
    const names = nameFunctions(all.map(({ server, tool }) => ({ server: server.name, tool: tool.name })))
    const offered = all.map(({ server, tool }, index) => ({ functionName: names[index]!, server, tool }))
    const kept = offered.slice(0, maxFunctions)
    const left = offered.slice(maxFunctions)
    this.#servers = servers
    this.#offered = new Map(kept.map((offer) => [offer.functionName, offer]))
    this.functions = kept.map(toFunction)
    this.lost = left.length === 0 ? lost : [...lost, tooMany(left)]
  }

  find(functionName: string): OfferedTool | undefined {
    return this.#offered.get(functionName)
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()))
  }
}

export const emptyToolbox = new Toolbox([], [])

/** Connects all servers side by side; those that fail are named in `lost`. */
export async function openToolbox(
  servers: readonly McpServer[],
  options: McpOptions,
  connect: Connect,
): Promise<Toolbox> {
  const tried = servers.slice(0, maxServers)
  const settled = await Promise.allSettled(tried.map((server) => connect(server, options)))
  const lost = settled.flatMap((result, index): LostServer[] =>
    result.status === 'rejected' ? [{ name: tried[index]!.name, reason: reasonOf(result.reason, (text) => text) }] : [],
  )
  const over = servers
    .slice(maxServers)
    .map(({ name }) => ({ name, reason: `only ${maxServers} servers are connected` }))
  const open = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  return new Toolbox(open, [...lost, ...over])
}

function toFunction({ functionName, tool }: OfferedTool): FunctionTool {
  const { description, inputSchema } = tool
  return {
    type: 'function',
    function: { name: functionName, ...(description === undefined ? {} : { description }), parameters: inputSchema },
  }
}

function tooMany(left: readonly OfferedTool[]): LostServer {
  const name = left[0]!.server.name
  return { name, reason: `${left.length} of all tools are not offered: an endpoint takes ${maxFunctions}` }
}
