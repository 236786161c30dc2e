/**
 * A client that keeps the books of what it asked: ids that others use too, a mark in every request, and a look at every
 * line that comes. An answer that carries another's mark, or an id never asked, is misdelivered; a second one is doubled.
 */
import { connect } from 'node:net'

const NEWLINE = 0x0a

export function openSocket(address, options = {}) {
  const [, door, rest] = /^(unix|tcp|http):(?:\/\/)?(.*)$/.exec(address)
  const colon = rest.lastIndexOf(':')
  const where = door === 'unix' ? { path: rest } : { host: rest.slice(0, colon), port: Number(rest.slice(colon + 1)) }
  const socket = connect({ ...where, ...options })
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      socket.on('error', () => {})
      resolve(socket)
    })
  })
}

/** Numbers, strings and fractions, the same at every player: aliases and comparison by value are at work all the time. */
const ID_SPELLINGS = [(n) => n, (n) => `${n}`, (n) => n + 0.5, (n) => -n]

export class Player {
  mark
  ledger
  /** What was asked and not answered: id as JSON -> number of the request. */
  open = new Map()
  isClosed = false
  /** What the plan said of the last request. */
  lastAsked = {}
  /** Hears the number of every request that was answered, in whatever way. */
  onAnswer = () => {}
  #stream
  #plan
  #window
  #held = []
  #asked = 0
  #session = 0
  #isPlaying = false
  #settled = () => {}
  #isCloseAnAnswer = false

  /** `stream` is a duplex; `plan(n)` gives what request `n` carries: `{ pool, inSession, params, method }`. */
  constructor(stream, { mark, ledger, plan, window = 4 }) {
    this.#stream = stream
    this.mark = mark
    this.ledger = ledger
    this.#plan = plan
    this.#window = window
    stream.on('data', (chunk) => this.#read(chunk))
    stream.on('error', () => {})
    for (const event of ['end', 'close']) stream.on(event, () => this.#closed())
  }

  static async connect(address, options) {
    return new Player(await openSocket(address), options)
  }

  /** Asks until told to stop, `window` requests at a time. */
  play() {
    this.#isPlaying = true
    this.#fill()
  }

  /** From here on a closed connection answers what is open (contract 7.4: the bus itself was killed). */
  acceptClosing() {
    this.#isCloseAnAnswer = true
  }

  /** Asks no more; resolves when nothing is open, the connection is closed, or the time is over. */
  rest(timeoutMs) {
    this.#isPlaying = false
    if (this.open.size === 0 || this.isClosed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#settled = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  leave() {
    this.#stream.destroy()
  }

  /** Leaves in the middle: what is open is nobody's debt any more. */
  abandon() {
    if (!this.isClosed) this.ledger.abandoned += this.open.size
    this.#isPlaying = false
    this.isClosed = true
    this.leave()
  }

  ask() {
    const n = ++this.#asked
    this.lastAsked = this.#plan(n)
    const { pool, inSession, params, method = 'work' } = this.lastAsked
    const id = ID_SPELLINGS[n % ID_SPELLINGS.length](n)
    const sessionId = inSession ? `${this.mark}/${this.#session}` : undefined
    this.open.set(JSON.stringify(id), n)
    this.ledger.requests++
    const message = { jsonrpc: '2.0', id, method, pool, sessionId, params: { ...params, client: this.mark, n } }
    this.#stream.write(`${JSON.stringify(message)}\n`)
  }

  #fill() {
    while (this.#isPlaying && !this.isClosed && this.open.size < this.#window) this.ask()
  }

  #read(chunk) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const line = Buffer.concat([...this.#held, chunk.subarray(start, end)])
      this.#held = []
      this.#take(JSON.parse(line.toString()))
      start = end + 1
    }
    if (start < chunk.length) this.#held.push(chunk.subarray(start))
  }

  #take(message) {
    if (message.method !== undefined) {
      if (message.params?.client !== this.mark) this.ledger.misdelivered++
      return
    }
    const key = JSON.stringify(message.id)
    const n = this.open.get(key)
    if (n === undefined) return this.#unexpected(message)
    this.open.delete(key)
    this.onAnswer(n)
    if (message.error === undefined) this.#answered(message.result, n)
    else this.#failed(message.error)
    this.#fill()
    if (this.open.size === 0) this.#settled()
  }

  #answered({ client, n } = {}, asked) {
    if (client === this.mark && n === asked) this.ledger.answered++
    else this.ledger.misdelivered++
  }

  #failed({ data }) {
    const reason = data?.reason ?? 'unnamed'
    this.ledger.failed(reason)
    if (reason === 'session_lost') this.#session++
    if (reason === 'shutting_down') this.#isPlaying = false
  }

  #unexpected({ id }) {
    const wasAsked = ID_SPELLINGS.some((spell) => {
      for (let n = Math.max(1, Math.floor(Math.abs(Number(id))) - 1), end = n + 2; n <= end; n++)
        if (n <= this.#asked && JSON.stringify(spell(n)) === JSON.stringify(id)) return true
      return false
    })
    this.ledger[wasAsked ? 'doubled' : 'misdelivered']++
  }

  #closed() {
    if (this.isClosed) return
    this.isClosed = true
    if (this.#isCloseAnAnswer) this.ledger.closed += this.open.size
    this.#settled()
  }
}
