import { describe, expect, it } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { descendantsOf, isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'
import {
  ask,
  newSession,
  prompt,
  SECRET,
  self,
  turn,
  writeAgents,
  writeCredentials,
} from './registry-worker-harness.ts'

const AGENTS = ['a+', 'b', 'c+', 'd', 'e+']

function configure(workspace: Workspace, more: object = {}): object {
  const agents = writeAgents(workspace, AGENTS)
  const registry = { index: agents, agents, cache: 'cache', credentials: writeCredentials(workspace, 'a'), ...more }
  return { pools: [{ id: 'all', agent: 'registry' }], registry }
}

async function startWithAgents(more: object = {}): Promise<Bus> {
  const workspace = testWorkspace()
  return startBus({ config: configure(workspace, more), workspace })
}

/** Chance that can be repeated. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** One client of many: it remembers all it sent and was given, and judges every line. */
class Guest {
  readonly client: LineClient
  readonly name: string
  readonly sent = new Set<unknown>()
  readonly texts = new Set<string>()
  readonly sessions = new Map<string, string>()
  readonly answered = new Map<unknown, number>()
  readonly reasons = new Set<string>()
  turns = 0
  permissions = 0
  readonly #waiting = new Map<unknown, { resolve(message: Message): void; reject(reason: unknown): void }>()
  #next = 0
  #end = false

  constructor(name: string, client: LineClient) {
    this.name = name
    this.client = client
    void this.#read()
  }

  request(method: string, params: object, more: object = {}): Promise<Message> {
    // Everybody counts from 1: only the bus keeps them apart.
    const id = ++this.#next
    this.sent.add(id)
    this.client.send({ jsonrpc: '2.0', id, method, params, ...more })
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  async session(agentId: string): Promise<string | undefined> {
    const { result, error } = await this.request('session/new', { cwd: '/', mcpServers: [] }, { agentId })
    if (error !== undefined) this.reasons.add(error.data.reason)
    if (result === undefined) return undefined
    expect(this.sessions.has(result.sessionId)).toBe(false)
    this.sessions.set(result.sessionId, agentId)
    return result.sessionId
  }

  async turn(sessionId: string, text: string): Promise<void> {
    this.texts.add(text)
    const { result, error } = await this.request('session/prompt', turn(sessionId, text))
    if (result !== undefined) this.turns++
    else this.reasons.add(error.data.reason)
  }

  close(): void {
    this.#end = true
    this.client.close()
  }

  async #read(): Promise<void> {
    try {
      for (;;) this.#judge(await this.client.next(60_000))
    } catch (error) {
      if (!this.#end) for (const { reject } of this.#waiting.values()) reject(error)
    }
  }

  #judge(message: Message): void {
    if (message.method === undefined) {
      this.answered.set(message.id, (this.answered.get(message.id) ?? 0) + 1)
      return this.#waiting.get(message.id)?.resolve(message)
    }
    const agent = this.sessions.get(message.params.sessionId)
    expect(agent, `${this.name} heard of a session that is not its own`).toBeDefined()
    if (message.id !== undefined) return this.#permit(message, agent!)
    const [from, said] = message.params.update.content.text.split(': ')
    expect(from.split('/')[0]).toBe(agent)
    expect(said === `yes-${this.name}` || this.texts.has(said), `${this.name} heard ${said}`).toBe(true)
  }

  #permit({ id, params }: Message, agent: string): void {
    expect(params.toolCall.title).toBe(agent)
    this.permissions++
    const outcome = { outcome: 'selected', optionId: `yes-${this.name}` }
    this.client.send({ jsonrpc: '2.0', id, result: { outcome } })
  }
}

describe('behind a bus', () => {
  const seed = 20_260_811

  it(`20 clients on 5 agents that die at random (seed ${seed}): nothing is mixed, everything is answered once`, async () => {
    const bus = await startWithAgents()
    const chance = seeded(seed)
    const ids = AGENTS.map((name) => name.replace('+', ''))
    const deaths = new Map(ids.map((id) => [id, 0]))
    const guests = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => new Guest(`guest${at}`, await bus.connect())),
    )
    const mayDie = (agent: string): boolean => {
      if (chance() > 0.08 || deaths.get(agent)! >= 4) return false
      deaths.set(agent, deaths.get(agent)! + 1)
      return true
    }
    const play = async (guest: Guest): Promise<void> => {
      for (let step = 0; step < 12; step++) {
        const agent = ids[Math.floor(chance() * ids.length)]!
        if (step % 4 === 0)
          await guest.request('initialize', { protocolVersion: 1, clientCapabilities: {}, agentId: agent })
        const session = await guest.session(agent)
        if (session === undefined) continue
        const deed = mayDie(agent) ? 'die' : chance() < 0.3 ? 'ask' : chance() < 0.3 ? 'wait' : 'say'
        await Promise.all([
          guest.turn(session, `${guest.name}-${step}-first`),
          guest.turn(session, deed === 'say' ? `${guest.name}-${step}` : deed),
        ])
      }
    }
    for (const guest of guests) guest.texts.add('waited')
    await Promise.all(guests.map(play))
    for (const { sent, answered } of guests) {
      expect([...answered.keys()].sort()).toEqual([...sent].sort())
      expect([...answered.values()].every((count) => count === 1)).toBe(true)
    }
    const reasons = new Set(guests.flatMap((guest) => [...guest.reasons]))
    expect([...reasons].filter((reason) => !['worker_exited', 'session_lost'].includes(reason))).toEqual([])
    expect([...deaths.values()].reduce((sum, count) => sum + count)).toBeGreaterThan(5)
    expect(guests.every(({ turns }) => turns > 5)).toBe(true)
    expect(guests.reduce((sum, { permissions }) => sum + permissions, 0)).toBeGreaterThan(10)
    const status = await bus.status()
    expect(status.workers).toMatchObject([{ pool: 'all', state: 'ready', restarts: 0, outstanding: 0 }])
    for (const guest of guests) guest.close()
    await bus.stop()
  })

  it('the question of an agent reaches the client of its session, and its answer the agent', async () => {
    verifies('R9-questions')
    const bus = await startWithAgents()
    const [one, two] = [await bus.connect(), await bus.connect()]
    const [first, second] = [await newSession(one, 'a'), await newSession(two, 'b')]
    one.send({ jsonrpc: '2.0', id: 'turn', method: 'session/prompt', params: turn(first, 'ask') })
    two.send({ jsonrpc: '2.0', id: 'turn', method: 'session/prompt', params: turn(second, 'ask') })
    const questions = [await one.next(), await two.next()]
    expect(questions.map(({ params }) => [params.sessionId, params.toolCall.title])).toEqual([
      [first, 'a'],
      [second, 'b'],
    ])
    two.send({ jsonrpc: '2.0', id: questions[1].id, result: { outcome: { outcome: 'cancelled' } } })
    expect((await two.next()).params.update.content.text).toBe('b/session-1: cancelled')
    await one.staysQuiet()
    const outcome = { outcome: 'selected', optionId: 'yes' }
    one.send({ jsonrpc: '2.0', id: questions[0].id, result: { outcome } })
    expect((await one.next()).params.update.content.text).toBe('a/session-1: yes')
  })

  it('the registry section of the configuration reaches it, and its secrets reach one agent only', async () => {
    const bus = await startWithAgents({ idle_timeout_sec: 1 })
    const client = await bus.connect()
    const [a, b] = [await newSession(client, 'a'), await newSession(client, 'b')]
    expect(await prompt(client, a, 'env AGENT_KEY')).toContain(`set ${SECRET.length}`)
    expect(await prompt(client, b, 'env AGENT_KEY')).toContain('unset')
    const { pid } = await self(client, 'a')
    await ask(client, 'session/close', { sessionId: a })
    await eventually('the idle agent to end', () => !isAlive(pid))
    const status = await bus.run(['status', '--json', '--control', bus.control])
    expect(status.code).toBe(0)
    for (const text of [status.stdout, bus.log.text, Buffer.concat(client.lines).toString()])
      expect(text).not.toContain(SECRET)
  })

  it('an agent whose clients have gone is idle, also one that cannot close sessions', async () => {
    const bus = await startWithAgents({ idle_timeout_sec: 1 })
    const [client, other] = [await bus.connect(), await bus.connect()]
    for (const agentId of ['a', 'b']) {
      await ask(client, 'initialize', { protocolVersion: 1, clientCapabilities: {} }, { agentId })
      await newSession(client, agentId)
    }
    const pids = [(await self(other, 'a')).pid, (await self(other, 'b')).pid]
    client.close()
    await eventually('both agents to end', () => !pids.some(isAlive))
  })

  it('nothing of it is left when the bus stops', async () => {
    const bus = await startWithAgents()
    const client = await bus.connect()
    for (const name of ['a', 'b', 'c']) await newSession(client, name)
    const pids = descendantsOf(bus.pid)
    expect(pids.length).toBeGreaterThan(4)
    expect(await bus.stop()).toMatchObject({ code: 0 })
    await eventually('all processes to be gone', () => !pids.some(isAlive), 1_000)
  })
})

describe('a pool that names an agent of the registry', () => {
  it('is not started at all while others can read the credentials: exit 2', async () => {
    verifies('R4-exposed')
    const workspace = testWorkspace()
    configure(workspace)
    const registry = {
      index: 'agents.json',
      agents: 'agents.json',
      credentials: writeCredentials(workspace, 'a', 0o640),
      cache: 'cache',
    }
    const bus = await startBus({ config: { pools: [{ id: 'a', registry: 'a' }], registry }, workspace, unready: true })
    expect((await bus.exit).code).toBe(2)
    expect(bus.log.text).toContain('chmod 600')
  })

  it('does not keep the others waiting while its agent is brought', async () => {
    verifies('R5-waits')
    const workspace = testWorkspace()
    const { startIndexServer } = await import('../fixtures/registry/index-server.ts')
    const server = await startIndexServer()
    server.pages.set('/index.json', 0)
    const pools = [
      { id: 'far', registry: 'far' },
      { id: 'near', agent: 'echo' },
    ]
    const registry = { index: `${server.url}/index.json`, cache: 'cache' }
    try {
      const bus = await startBus({ config: { pools, registry }, workspace })
      const client = await bus.connect()
      expect(await ask(client, 'hello', {}, { pool: 'near' })).toHaveProperty('result')
      const { workers } = await bus.status()
      expect(workers.find(({ pool }) => pool === 'far')).toMatchObject({ state: 'starting', pid: null })
      expect(await bus.stop()).toMatchObject({ code: 0 })
    } finally {
      await server.close()
    }
  })
})
