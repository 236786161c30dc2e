import { renameSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import * as acp from '@agentclientprotocol/sdk'
import { describe, expect, it } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { packAgent } from '../fixtures/registry/pack.ts'
import { testWorkspace } from '../support/bus.ts'
import { descendantsOf, isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import {
  ask,
  entry,
  newSession,
  prompt,
  SECRET,
  self,
  startLauncher,
  turn,
  writeAgents,
  writeCredentials,
} from './registry-worker-harness.ts'

const viaMeta = (agentId: string) => ({ _meta: { 'stdio-bus/agentId': agentId } })

function launch(names: readonly string[], args: readonly string[] = [], env = {}) {
  const workspace = testWorkspace()
  writeAgents(workspace, names)
  return { workspace, ...startLauncher(workspace, args, env) }
}

describe('one worker that offers all agents', () => {
  it('serves an unchanged ACP client, which answers the questions of the agent itself', async () => {
    verifies('R7-client')
    const { child } = launch(['one', 'two'])
    const stream = acp.ndJsonStream(
      Writable.toWeb(child.stdin!),
      Readable.toWeb(child.stdout!) as ReadableStream<Uint8Array>,
    )
    const said: string[] = []
    const asked: string[] = []
    await acp
      .client()
      .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
        if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text')
          said.push(update.content.text)
      })
      .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
        asked.push(`${params.sessionId} ${params.toolCall.title}`)
        return { outcome: { outcome: 'selected' as const, optionId: 'yes' } }
      })
      .connectWith(stream, async (ctx) => {
        const hello = { protocolVersion: 1, clientCapabilities: {} }
        const launcher: acp.InitializeResponse = await ctx.request(acp.methods.agent.initialize, hello)
        expect(launcher).toMatchObject({ protocolVersion: 1, agentCapabilities: {}, authMethods: [] })
        expect(launcher._meta?.['stdio-bus/agents']).toContainEqual({ id: 'one', name: 'Agent one', version: '1.0.0' })
        for (const id of ['one', 'two']) {
          const agent: acp.InitializeResponse = await ctx.request(acp.methods.agent.initialize, {
            ...hello,
            ...viaMeta(id),
          })
          expect(agent.agentInfo?.name).toBe(id)
          const { sessionId } = await ctx.request(acp.methods.agent.session.new, {
            cwd: '/',
            mcpServers: [],
            ...viaMeta(id),
          })
          await ctx.request(acp.methods.agent.session.prompt, turn(sessionId, 'ask') as never)
        }
      })
    expect(said).toEqual(['one/session-1: yes', 'two/session-1: yes'])
    expect(asked[0]).toBe('session-1 one')
    expect(asked[1]).toMatch(/^session-(?!1 ).* two$/)
  })

  it('tells sessions of two agents apart that chose the same id', async () => {
    verifies('R9-same-id')
    const { client } = launch(['one', 'two'])
    const [one, two] = [await newSession(client, 'one'), await newSession(client, 'two')]
    expect(one).not.toBe(two)
    expect(await prompt(client, two, 'hello')).toBe('two/session-1: hello')
    expect(await prompt(client, one, 'hello')).toBe('one/session-1: hello')
  })

  it('answers what an agent owed when it dies, and starts it again with the next message', async () => {
    verifies('R8-dies')
    const { client } = launch(['one'])
    await ask(client, 'initialize', { protocolVersion: 1 }, { agentId: 'one' })
    const before = await self(client, 'one')
    const session = await newSession(client, 'one')
    const dead = await ask(client, 'session/prompt', turn(session, 'die'))
    expect(dead.error).toMatchObject({ code: -32603, data: { reason: 'worker_exited', exitCode: 3, retryable: true } })
    const lost = await ask(client, 'session/prompt', turn(session, 'hello'))
    expect(lost.error).toMatchObject({ code: -32002, data: { reason: 'session_lost' } })
    const after = await self(client, 'one')
    expect(after.pid).not.toBe(before.pid)
    expect(after.hellos).toBe(1)
  })

  it('ends an agent that is idle, and not one that has a session', async () => {
    verifies('R8-idle')
    const { client } = launch(['idle+', 'busy'], ['--idle-timeout', '0.4'])
    const session = await newSession(client, 'idle')
    await newSession(client, 'busy')
    const [idle, busy] = [await self(client, 'idle'), await self(client, 'busy')]
    await ask(client, 'session/close', { sessionId: session })
    await eventually('the idle agent to end', () => !isAlive(idle.pid))
    expect(isAlive(busy.pid)).toBe(true)
    expect((await self(client, 'idle')).pid).not.toBe(idle.pid)
  })

  it('refuses what names no agent, or one that is not there', async () => {
    verifies('R7-refused')
    const { client } = launch(['one'])
    const none = await ask(client, 'session/new', {})
    expect(none.error).toMatchObject({ code: -32600, data: { reason: 'agent_required' } })
    const unknown = await ask(client, 'session/new', { agentId: 'nobody' })
    expect(unknown.error).toMatchObject({ code: -32601, data: { reason: 'unknown_agent', agentId: 'nobody' } })
    expect(unknown.error.data.known).toContain('one')
  })
})

describe('an agent that is not installed yet', () => {
  it('is installed while its first request waits; a failure is a clear error, and the next request tries again', async () => {
    verifies('R8-installs')
    const workspace = testWorkspace()
    const tarball = packAgent(workspace.folder, 'packed')
    const late = `${tarball}.late.tgz`
    writeAgents(workspace, ['one'], [entry('packed', { npx: { package: `file:${late}` } })])
    const { client, stderr } = startLauncher(workspace)
    const early = await ask(client, 'session/new', { cwd: '/', mcpServers: [] }, { agentId: 'packed' })
    expect(early.error).toMatchObject({ code: -32603, data: { reason: 'no_worker', retryable: true } })
    expect(early.error.data.why).toContain('the file is not there')
    renameSync(tarball, late)
    client.send({ jsonrpc: '2.0', id: 'slow', method: 'session/new', params: { cwd: '/' }, agentId: 'packed' })
    expect(await newSession(client, 'one')).toBe('session-1')
    expect((await client.answerTo('slow', 15_000)).result.sessionId).toBe('fixture-1')
    expect(stderr()).toMatch(/installing packed 1\.0\.0/)
  })
})

describe('credentials', () => {
  it('are in the environment of their agent and nowhere else', async () => {
    verifies('R4-nowhere-else')
    const workspace = testWorkspace()
    writeAgents(workspace, ['one', 'two'])
    const { client, stderr } = startLauncher(workspace, ['--credentials', writeCredentials(workspace, 'one')], {
      OTHER_KEY: SECRET,
    })
    const [one, two] = [await newSession(client, 'one'), await newSession(client, 'two')]
    expect(await prompt(client, one, 'env AGENT_KEY')).toContain(`set ${SECRET.length}`)
    expect(await prompt(client, two, 'env AGENT_KEY')).toContain('unset')
    expect(await prompt(client, one, 'env OTHER_KEY')).toContain('unset')
    await ask(client, 'session/prompt', turn(one, 'die'))
    expect(Buffer.concat(client.lines).toString()).not.toContain(SECRET)
    expect(stderr()).not.toContain(SECRET)
  })

  it('that others can read end it with exit 2', async () => {
    const workspace = testWorkspace()
    writeAgents(workspace, ['one'])
    const { exit, stderr } = startLauncher(workspace, ['--credentials', writeCredentials(workspace, 'one', 0o644)])
    expect(await exit).toBe(2)
    expect(stderr()).toContain('chmod 600')
    expect(stderr()).not.toContain(SECRET)
  })

  it.each([['--idle-timeout', 'soon'], ['--max-line', '0'], ['--log-level', 'loud'], ['--unknown'], ['word']])(
    'a mistake in the arguments, %s, is exit 2',
    async (...args) => {
      const { exit, stderr } = launch([], args.filter(Boolean))
      expect(await exit).toBe(2)
      expect(stderr()).toContain(args[0])
    },
  )
})

describe('contract 3.3: it ends with its agents', () => {
  async function running() {
    const launcher = launch(['one'])
    await self(launcher.client, 'one')
    launcher.client.send({ jsonrpc: '2.0', id: 'never', method: 'x', params: {}, agentId: 'stubborn' })
    await eventually('the stubborn agent to run', () => descendantsOf(launcher.child.pid!).length >= 4)
    return { ...launcher, pids: descendantsOf(launcher.child.pid!) }
  }
  const areGone = (pids: readonly number[]) => () => !pids.some(isAlive)

  it('within a second of the end of its input, and answers what it owes', async () => {
    verifies('R10-ends')
    const { client, exit, pids } = await running()
    const startMs = performance.now()
    client.endWriting()
    expect(await exit).toBe(0)
    expect(performance.now() - startMs).toBeLessThan(1_000)
    await eventually('its agents to be gone', areGone(pids), 500)
    const rest = client.lines.map((line) => JSON.parse(line.toString())).filter(({ id }) => id === 'never')
    expect(rest).toMatchObject([{ error: { data: { reason: 'shutting_down' } } }])
  })

  it('within a second of SIGTERM', async () => {
    verifies('3.3-shipped-agents-end')
    const { child, exit, pids } = await running()
    const startMs = performance.now()
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
    expect(performance.now() - startMs).toBeLessThan(1_000)
    await eventually('its agents to be gone', areGone(pids), 500)
  })

  it('and when it is killed itself', async () => {
    verifies('R10-ends')
    const { child, pids } = await running()
    child.kill('SIGKILL')
    await eventually('its agents to be gone', areGone(pids), 3_000)
  })
})
