/**
 * `stdio-bus demo`: a first success without key or network. It starts a real bus as a process, shows two exchanges over
 * its real door, and stops it. Everything it makes lies in one temporary folder, which it removes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { colors, DemoBus, say, step } from '../demo/demo-bus.ts'
import { VERSION } from '../version.ts'

/** The embedded configuration: an echo worker twice, and the OpenAI agent on its built-in demo model. */
const CONFIG = {
  pools: [
    { id: 'echo', agent: 'echo', instances: 2 },
    { id: 'chat', agent: 'openai', args: ['--demo'], protocol: 'acp', instances: 1 },
  ],
  default_pool: 'echo',
}

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description('a first exchange through a real bus, without key or network')
    .option('--cluster', 'three nodes on a nats-server of this machine, and one of them is killed')
    .action(async ({ cluster }: { cluster?: boolean }) => {
      const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-demo-'))
      try {
        if (cluster) await (await import('../demo/demo-cluster.ts')).showCluster(folder)
        else await showAlone(folder)
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    })
}

async function showAlone(folder: string): Promise<void> {
  const bus = new DemoBus(folder, CONFIG)
  try {
    await show(bus)
  } finally {
    await bus.stop()
  }
}

async function show(bus: DemoBus): Promise<void> {
  say(colors.bold(`stdio Bus ${VERSION}: a first exchange, without key or network\n`))
  step(1, 'A bus with two pools: echo (two workers) and chat (the OpenAI agent on a built-in demo model)')
  await bus.start()
  say(`   ${colors.green('ready')} on ${bus.socket}\n`)
  step(2, 'Two clients that both count their ids from 1 share the echo workers; each gets its own answer')
  await Promise.all([greet(bus, 'A'), greet(bus, 'B')])
  say('')
  step(3, 'An ACP client asks the agent; the answer streams')
  await askAgent(bus)
  say('')
  say(colors.bold('What next'))
  say('   npx stdio-bus init              write a commented configuration of your own')
  say('   npx stdio-bus chat "a question" talk to an agent in the terminal')
  say(
    '   npx stdio-bus demo --cluster    the same over three nodes\n   npx stdio-bus --help            everything else',
  )
}

async function greet(bus: DemoBus, name: string): Promise<void> {
  const client = await bus.connect(name)
  const answer = await client.ask({ jsonrpc: '2.0', id: 1, method: 'hello', params: { from: name } }, true)
  if (JSON.stringify(answer).includes(`"${name}"`)) return client.close()
  throw new Error(`client ${name} got an answer that is not its own: ${JSON.stringify(answer)}`)
}

async function askAgent(bus: DemoBus): Promise<void> {
  const client = await bus.connect('C')
  client.send({ method: 'bus::open', params: { pool: 'chat' } })
  await client.ask({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: 1, clientCapabilities: {} },
  })
  const made = await client.ask({
    jsonrpc: '2.0',
    id: 2,
    method: 'session/new',
    params: { cwd: process.cwd(), mcpServers: [] },
  })
  const { sessionId } = made['result'] as { sessionId: string }
  const text = 'What is stdio Bus?'
  say(`   C ${colors.cyan('→')} session/prompt ${JSON.stringify(text)}`)
  process.stdout.write(`   C ${colors.magenta('←')} `)
  client.onNotification = (message) => {
    const { update } = (message['params'] ?? {}) as { update?: { content?: { text?: string } } }
    process.stdout.write((update?.content?.text ?? '').replaceAll('\n', '\n     '))
  }
  const prompt = { sessionId, prompt: [{ type: 'text', text }] }
  const end = await client.ask({ jsonrpc: '2.0', id: 3, method: 'session/prompt', params: prompt })
  say(`\n     ${colors.dim(JSON.stringify(end['result']))}`)
  client.close()
}
