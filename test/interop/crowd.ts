/** Members of a crowd: raw clients that all use the same ids, and notice everything that is not for them. */
import { connect, type Socket } from 'node:net'
import type { Message } from '../support/line-client.ts'

/** Numbers in [0, 1) that a seed repeats. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** The n-th id of every member, as JSON: numbers, strings, fractions and unsafe integers that look alike. */
export function idOf(n: number): string {
  const spellings = [`${n}`, `"${n}"`, `${n}.5`, `9007199254740${993 + n}`, `"${n}.5"`]
  return spellings[n % spellings.length]!
}

export interface Exchange {
  readonly mark: string
  readonly answers: Message[]
  isCancelled: boolean
}

export class Member {
  readonly name: string
  readonly exchanges = new Map<string, Exchange>()
  /** Whatever was not for this member, or came too late, or twice. */
  readonly wrong: string[] = []
  readonly heard: Message[] = []
  hasLeft = false
  readonly #socket: Socket
  #held = ''
  #count = 0
  #waiting = new Map<string, (answer: Message) => void>()
  onCall: (message: Message) => void = () => {}

  constructor(name: string, path: string) {
    this.name = name
    this.#socket = connect({ path })
    this.#socket.setEncoding('utf8')
    this.#socket.on('data', (text: string) => this.#read(text))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => this.#end())
  }

  send(line: string): void {
    if (!this.hasLeft) this.#socket.write(`${line}\n`)
  }

  /** Sends a request under the next id; gives the answer, or undefined when the member leaves or cancels before. */
  ask(
    method: string,
    params: (mark: string, id: string) => object,
  ): { id: string; answer: Promise<Message | undefined> } {
    const id = idOf(this.#count++)
    const mark = `${this.name}#${id}`
    this.exchanges.set(id, { mark, answers: [], isCancelled: false })
    const answer = new Promise<Message | undefined>((resolve) => this.#waiting.set(id, resolve))
    this.send(
      `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${JSON.stringify(params(mark, id)).replace('"$ID"', id)}}`,
    )
    return { id, answer }
  }

  /** The member expects no answer any more. */
  waive(id: string): void {
    this.exchanges.get(id)!.isCancelled = true
    this.#waiting.get(id)?.(undefined as never)
  }

  leave(): void {
    this.hasLeft = true
    this.#socket.destroy()
    this.#end()
  }

  #end(): void {
    if (!this.hasLeft) this.wrong.push('closed by the bus')
    this.hasLeft = true
    for (const resolve of this.#waiting.values()) resolve(undefined as never)
  }

  #read(text: string): void {
    const lines = (this.#held + text).split('\n')
    this.#held = lines.pop()!
    for (const line of lines) this.#take(line)
  }

  #take(line: string): void {
    if (this.hasLeft) return
    const message = JSON.parse(line)
    this.heard.push(message)
    if (message.method !== undefined) return this.onCall(message)
    const id = /"id":("[^"]*"|[^,}]+)/.exec(line)![1]!
    const exchange = this.exchanges.get(id)
    if (exchange === undefined) return void this.wrong.push(`an answer nobody asked for: ${line}`)
    exchange.answers.push(message)
    const mark = message.result?.mark
    if (mark !== undefined && mark !== exchange.mark) this.wrong.push(`${mark} instead of ${exchange.mark}`)
    this.#waiting.get(id)?.(message)
  }

  /** Notes a message whose mark is not of this member. */
  check(mark: unknown, message: Message): void {
    if (typeof mark !== 'string' || !mark.startsWith(`${this.name}#`)) this.wrong.push(JSON.stringify(message))
  }
}
