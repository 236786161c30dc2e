/**
 * Who can be called, and the adapter of each: the agents of the configuration, and programs that have registered.
 *
 * A name belongs to one agent; what the configuration names is nobody else's. What adapters keep of a caller (its sessions,
 * its conversations) ends with it. It knows nothing of calls.
 */
import { acpAdapter } from './acp-adapter.ts'
import { AcpGuests } from './acp-turn.ts'
import type { Adapter } from './adapter.ts'
import { type AgentSpec, isPooled, type NamedAgent, type PooledAgent, type UrlAgent } from './agent-spec.ts'
import { HttpWays, httpAdapter } from './http-adapter.ts'
import { type McpWays, mcpAdapter } from './mcp-adapter.ts'
import { oneshotAdapter } from './oneshot-adapter.ts'
import { callerKey } from './open-calls.ts'
import type { Caller, GatewayPort, OpenUpstream, SpawnOneshot } from './port.ts'
import { Programs } from './programs.ts'
import { Samplings } from './sampling.ts'
import { ModelDesk } from './served-sampling.ts'
import { stdioAdapter } from './stdio-adapter.ts'
import { Turns } from './turns.ts'
import { UrlServer } from './url-server.ts'

/** What adapters need of the world. */
export interface AgentWorld {
  readonly port: GatewayPort
  readonly spawnOneshot: SpawnOneshot
  readonly openUpstream: OpenUpstream
  /** There is a pool of this name. */
  readonly isPool: (name: string) => boolean
}

export class Agents {
  readonly programs: Programs
  readonly #world: AgentWorld
  readonly #mcp: McpWays
  readonly #turns = new Turns()
  readonly #guests: AcpGuests
  /** Agents that are MCP servers at URLs. */
  readonly #servers = new Map<string, UrlServer>()
  /** Pools of MCP servers; one that is no agent any more may still have workers. */
  readonly #strictPools = new Set<string>()
  #configured: ReadonlyMap<string, AgentSpec> = new Map()
  #adapters: ReadonlyMap<string, Adapter> = new Map()
  #http: HttpWays | undefined

  constructor(world: AgentWorld) {
    const { port } = world
    this.#world = world
    this.#guests = new AcpGuests(port)
    this.#mcp = { port, samplings: new Samplings(() => port.nowMs()), models: new ModelDesk(this.#guests) }
    this.programs = new Programs(port)
  }

  /** Gives the names that are gone. */
  replace(agents: readonly AgentSpec[]): ReadonlySet<string> {
    const before = this.#configured
    this.#adapters = new Map(agents.map((agent) => [agent.name, this.#keptAdapter(agent) ?? this.#adapterFor(agent)]))
    this.#configured = new Map(agents.map((agent) => [agent.name, agent]))
    for (const [name, server] of this.#servers) {
      const agent = this.#configured.get(name)
      if (agent?.type === 'mcp' && agent.pool === undefined) continue
      this.#servers.delete(name)
      server.retire()
    }
    this.programs.forgetNamed((name) => this.isTaken(name))
    for (const agent of agents) {
      if (!isPooled(agent)) continue
      if (agent.type === 'mcp') this.#strictPools.add(agent.pool)
      else this.#strictPools.delete(agent.pool)
    }
    return new Set([...before.keys()].filter((name) => !this.#configured.has(name)))
  }

  get all(): ReadonlyMap<string, NamedAgent> {
    return new Map<string, NamedAgent>([...this.programs.agents, ...this.#configured])
  }

  find(name: string): NamedAgent | undefined {
    return this.#configured.get(name) ?? this.programs.find(name)
  }

  adapterOf(name: string): Adapter {
    return this.#adapters.get(name) ?? this.programs.adapterOf(name)!
  }

  /** What the configuration has named is nobody else's. */
  isTaken(name: string): boolean {
    return this.#configured.has(name) || this.#world.isPool(name)
  }

  ofPool(pool: string | undefined): PooledAgent | undefined {
    return [...this.#configured.values()].filter(isPooled).find((agent) => agent.pool === pool)
  }

  /** MCP peers leave a message with fields they do not know without notice. */
  isStrict({ kind, pool }: Caller): boolean {
    return kind === 'worker' && pool !== undefined && this.#strictPools.has(pool)
  }

  /** The caller has gone; its calls have been given up. */
  forget(caller: Caller): void {
    const key = callerKey(caller)
    this.#guests.forget(key, caller.kind === 'client' ? Number(caller.key) : undefined)
    this.#mcp.samplings.forget(key)
    this.programs.forget(caller)
  }

  async close(): Promise<void> {
    this.#guests.leaveAll()
    for (const server of this.#servers.values()) server.close()
    await this.#http?.dispatcher.destroy()
  }

  /** An agent that stays as it was keeps its adapter: those who wait for their turn there keep their places. */
  #keptAdapter(agent: AgentSpec): Adapter | undefined {
    const before = this.#configured.get(agent.name)
    return JSON.stringify(before) === JSON.stringify(agent) ? this.#adapters.get(agent.name) : undefined
  }

  #adapterFor(agent: AgentSpec): Adapter {
    const { port, spawnOneshot } = this.#world
    if (agent.type === 'http') return httpAdapter(agent, (this.#http ??= new HttpWays(this.#turns)))
    if (agent.type === 'acp') return acpAdapter(agent, this.#guests)
    if (agent.type === 'mcp')
      return mcpAdapter(agent, isPooled(agent) ? this.#mcp : { ...this.#mcp, port: this.#serverOf(agent) })
    return agent.mode === 'oneshot' ? oneshotAdapter(agent, spawnOneshot, this.#turns) : stdioAdapter(agent, port)
  }

  #serverOf(agent: UrlAgent): UrlServer {
    const { port, openUpstream } = this.#world
    this.#servers.get(agent.name)?.retire()
    const server = new UrlServer(agent, port, openUpstream)
    this.#servers.set(agent.name, server)
    return server
  }
}
