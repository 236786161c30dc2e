/**
 * One connection of an attacker and its books. Requests are numbered from 1 and each must be answered exactly once, except
 * those that are meant to stay open; lines are looked at as text, for a flood is not worth parsing.
 */
import { openSocket } from '../stage/player.mjs'
import { eventually } from '../stage/waiting.mjs'

const NEWLINE = 0x0a

export class Books {
  lines = 0
  answered = 0
  errors = {}
  violations = []

  failed(reason) {
    this.errors[reason] = (this.errors[reason] ?? 0) + 1
  }

  check(holds, violation) {
    if (!holds) this.violations.push(violation)
  }
}

export class HostileClient {
  socket
  /** How often each number was answered. */
  answers
  answerCount = 0
  isClosed = false
  #books
  #rest = ''

  static async open(address, books, count = 1) {
    const client = new HostileClient()
    client.#books = books
    client.answers = new Uint8Array(count + 1)
    client.socket = await openSocket(address)
    client.socket.on('data', (chunk) => client.#read(chunk))
    client.socket.on('close', () => {
      client.isClosed = true
    })
    return client
  }

  /** Writes and waits until the system has taken it. */
  async write(bytes) {
    if (this.isClosed) return
    if (!this.socket.write(bytes)) await new Promise((resolve) => this.#once(resolve))
  }

  /** Waits until the bus has closed it. */
  closed(timeoutMs = 5_000) {
    return eventually(() => this.isClosed, timeoutMs, 10)
  }

  /** Waits for `count` answers in all. */
  async heard(count, timeoutMs = 60_000) {
    const all = await eventually(() => this.answerCount >= count || this.isClosed, timeoutMs, 5)
    this.#books.check(all && this.answerCount >= count, `${this.answerCount} of ${count} answers came`)
  }

  leave() {
    this.socket.destroy()
  }

  #once(resolve) {
    const done = () => {
      for (const event of ['drain', 'close']) this.socket.off(event, done)
      resolve()
    }
    for (const event of ['drain', 'close']) this.socket.once(event, done)
  }

  #read(chunk) {
    if (chunk.indexOf(NEWLINE) === -1) {
      this.#rest += chunk.latin1Slice()
      return
    }
    const lines = (this.#rest + chunk.latin1Slice()).split('\n')
    this.#rest = lines.pop()
    for (const line of lines) this.#take(line)
  }

  #take(line) {
    const id = Number(/"id":(\d+)/.exec(line.slice(0, 200))?.[1] ?? 0)
    const reason = line.includes('"error"') ? /"reason":"(\w+)"/.exec(line)?.[1] : undefined
    this.answerCount++
    if (reason === undefined) this.#books.answered++
    else this.#books.failed(reason)
    if (++this.answers[id] > 1) this.#books.violations.push(`request ${id} was answered twice`)
  }
}
