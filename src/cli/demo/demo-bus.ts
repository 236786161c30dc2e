/** A bus of a demo as a process, in a folder that goes with the demo, and a client of it that shows what it says. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createColors } from 'picocolors'
import { wantsColor } from '../../host/terminal.ts'

export const colors = createColors(wantsColor(process.stdout))
export const PROGRAM = fileURLToPath(new URL('../main.js', import.meta.url))

export function step(number: number, text: string): void {
  say(`${colors.bold(String(number))}  ${text}`)
}

export function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

export type Message = Record<string, unknown>

export class DemoClient {
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

  async ask(message: Message, isShown = false, mayFail = false): Promise<Message> {
    const answered = new Promise<Message>((resolve) => this.#waiting.set(message['id'], resolve))
    if (isShown) say(`   ${this.#name} ${colors.cyan('→')} ${JSON.stringify(message)}`)
    this.send(message)
    const answer = await answered
    if (isShown) say(`   ${this.#name} ${colors.magenta('←')} ${JSON.stringify(answer)}`)
    if (mayFail) return answer
    if (answer['error'] !== undefined)
      throw new Error(`the bus answered with an error: ${JSON.stringify(answer['error'])}`)
    return answer
  }

  close(): void {
    this.#socket.end()
  }
}

export class DemoBus {
  readonly socket: string
  readonly control: string
  readonly #file: string
  readonly #config: object
  #process: ChildProcess | undefined

  /** Several of them in one folder have names of their own. */
  constructor(folder: string, config: object, name = 'bus') {
    this.#config = config
    this.#file = join(folder, `${name}.json`)
    this.socket = join(folder, `${name}.sock`)
    this.control = join(folder, `${name}.control`)
  }

  async start(): Promise<void> {
    writeFileSync(this.#file, JSON.stringify(this.#config))
    const args = [PROGRAM, 'serve', '--config', this.#file, '--unix', this.socket, '--control', this.control]
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

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const bus = this.#process
    if (bus === undefined || bus.exitCode !== null || bus.signalCode !== null) return
    const exited = new Promise((resolve) => bus.once('exit', resolve))
    bus.kill(signal)
    await exited
  }
}
