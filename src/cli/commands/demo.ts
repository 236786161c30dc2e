/**
 * `stdio-bus demo`: a first success without key or network. It starts a real bus as a process, shows two exchanges over
 * its real door, and stops it. Everything it makes lies in one temporary folder, which it removes.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import picocolors from 'picocolors'
import { VERSION } from '../version.ts'

const PROGRAM = fileURLToPath(new URL('../main.js', import.meta.url))

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
    .action(async () => {
      const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-demo-'))
      const bus = new DemoBus(folder)
      try {
        await show(bus)
      } finally {
        await bus.stop()
        rmSync(folder, { recursive: true, force: true })
      }
    })
}

async function show(bus: DemoBus): Promise<void> {
  say(picocolors.bold(`stdio Bus ${VERSION}: a first exchange, without key or network\n`))
  step(1, 'A bus with two pools: echo (two workers) and chat (the OpenAI agent on a built-in demo model)')
  await bus.start()
  say(`   ${picocolors.green('ready')} on ${bus.socket}\n`)
  step(2, 'Two clients that both count their ids from 1 share the echo workers; each gets its own answer')
  await Promise.all([greet(bus, 'A'), greet(bus, 'B')])
  say('')
  step(3, 'An ACP client asks the agent; the answer streams')
  await askAgent(bus)
  say('')
  say(picocolors.bold('What next'))
  say('   npx stdio-bus init              write a commented configuration of your own')
  say('   npx stdio-bus chat "a question" talk to an agent in the terminal')
  say('   npx stdio-bus --help            everything else')
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
  say(`   C ${picocolors.cyan('→')} session/prompt ${JSON.stringify(text)}`)
  process.stdout.write(`   C ${picocolors.magenta('←')} `)
  client.onNotification = (message) => {
    const { update } = (message['params'] ?? {}) as { update?: { content?: { text?: string } } }
    process.stdout.write((update?.content?.text ?? '').replaceAll('\n', '\n     '))
  }
  const prompt = { sessionId, prompt: [{ type: 'text', text }] }
  const end = await client.ask({ jsonrpc: '2.0', id: 3, method: 'session/prompt', params: prompt })
  say(`\n     ${picocolors.dim(JSON.stringify(end['result']))}`)
  client.close()
}

function step(number: number, text: string): void {
  say(`${picocolors.bold(String(number))}  ${text}`)
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

type Message = Record<string, unknown>

class DemoClient {
  onNotification: (message: Message) => void = () => {}
  readonly #name: string
  readonly #socket: Socket
  readonly #waiting = new Map<unknown, (message: Message) => void>()

  constructor(name: string, socket: Socket) {
    this.#name = name
    this.#socket = socket
    createInterface({ input: socket }).on('line', (line) => {
      const message = JSON.parse(line) as Message
      const answer = this.#waiting.get(message['id'])
      if (answer === undefined) return this.onNotification(message)
      this.#waiting.delete(message['id'])
      answer(message)
    })
  }

  send(message: Message): void {
    this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  async ask(message: Message, isShown = false): Promise<Message> {
    const answered = new Promise<Message>((resolve) => this.#waiting.set(message['id'], resolve))
    if (isShown) say(`   ${this.#name} ${picocolors.cyan('→')} ${JSON.stringify(message)}`)
    this.send(message)
    const answer = await answered
    if (isShown) say(`   ${this.#name} ${picocolors.magenta('←')} ${JSON.stringify(answer)}`)
    if (answer['error'] !== undefined)
      throw new Error(`the bus answered with an error: ${JSON.stringify(answer['error'])}`)
    return answer
  }

  close(): void {
    this.#socket.end()
  }
}

class DemoBus {
  readonly socket: string
  readonly #folder: string
  #process: ChildProcess | undefined

  constructor(folder: string) {
    this.#folder = folder
    this.socket = join(folder, 'bus.sock')
  }

  async start(): Promise<void> {
    const file = join(this.#folder, 'stdio-bus.json')
    writeFileSync(file, JSON.stringify(CONFIG))
    const args = [
      PROGRAM,
      'serve',
      '--config',
      file,
      '--unix',
      this.socket,
      '--control',
      join(this.#folder, 'control.sock'),
    ]
    const bus = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#process = bus
    await new Promise<void>((resolve, reject) => {
      const seen: string[] = []
      createInterface({ input: bus.stderr! }).on('line', (line) => {
        seen.push(line)
        if (line.includes('"msg":"ready"')) resolve()
      })
      bus.once('exit', () => reject(new Error(`the bus did not start:\n${seen.join('\n')}`)))
    })
  }

  connect(name: string): Promise<DemoClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.socket, () => resolve(new DemoClient(name, socket)))
      socket.once('error', reject)
    })
  }

  async stop(): Promise<void> {
    const bus = this.#process
    if (bus === undefined || bus.exitCode !== null) return
    const exited = new Promise((resolve) => bus.once('exit', resolve))
    bus.kill('SIGTERM')
    await exited
  }
}
