/**
 * A client of MCP over HTTP that keeps the books of what it asked: its connections break, it comes back for what it missed, reads
 * slowly, or vanishes in the middle.
 *
 * Every update and answer carries the mark of its request: one of another is misdelivered, one that comes again doubled, and a
 * request that can be resumed and whose answer never comes is lost.
 */
import { Agent, request } from 'node:http'
import { sleep } from './waiting.mjs'

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'chaos', version: '1' } }
const SLOW_MS = 20
const AGAIN_MS = 50
const ATTEMPTS = 200

/** Sends a request; gives the response and a way to break it off. */
function send(url, { method = 'POST', headers, body, agent = false }) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { ...HEADERS, ...headers }, agent })
    sent.once('error', reject)
    sent.once('response', (response) => {
      response.on('error', () => {})
      sent.off('error', reject).on('error', () => {})
      resolve({ response, breakOff: () => sent.destroy() })
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

async function textOf(response) {
  let text = ''
  for await (const part of response.setEncoding('utf8')) text += part
  return text
}

/** What one request has heard so far, over all its connections. */
class Call {
  updates = 0
  lastEventId
  outcome
  #ledger
  #mark

  constructor(ledger, mark) {
    this.#ledger = ledger
    this.#mark = mark
  }

  event(block) {
    const lines = block.split('\n')
    const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
    this.lastEventId = field('id') ?? this.lastEventId
    const data = field('data')
    if (data !== undefined && data !== '') this.take(JSON.parse(data))
  }

  take({ method, params, result, error }) {
    if (method !== undefined) return this.#update(params)
    if (this.outcome !== undefined) return this.#ledger.doubled++
    this.outcome = error === undefined ? 'answered' : (error.data?.reason ?? 'unnamed')
    if (error !== undefined) this.#ledger.failed(this.outcome)
    else if (`${result.client}/${result.n}` === this.#mark) this.#ledger.answered++
    else this.#ledger.misdelivered++
  }

  #update({ message, progress }) {
    if (message !== this.#mark) this.#ledger.misdelivered++
    else if (progress <= this.updates) this.#ledger.doubled++
    else if (progress > this.updates + 1) this.missed = true
    this.updates = Math.max(this.updates, progress)
  }
}

export class WebPlayer {
  /** How often it has come back, and has seen a gap. */
  resumed = 0
  missed = 0
  /** Connections that it has broken off. */
  dropped = 0
  #url
  #mark
  #ledger
  #random
  #asked = 0
  #session
  #agent = new Agent({ keepAlive: true, maxSockets: 4 })

  constructor(url, { mark, ledger, random }) {
    this.#url = url
    this.#mark = mark
    this.#ledger = ledger
    this.#random = random
  }

  async open() {
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params: INITIALIZE }
    const { response } = await send(this.#url, { body, agent: this.#agent })
    await textOf(response)
    this.#session = { 'mcp-session-id': response.headers['mcp-session-id'] }
    const confirmed = { jsonrpc: '2.0', method: 'notifications/initialized' }
    await textOf((await send(this.#url, { body: confirmed, headers: this.#session, agent: this.#agent })).response)
    return this
  }

  /** Asks, several at a time, until `isOver` says so. */
  async play(isOver, window = 3) {
    const one = async () => {
      while (!isOver()) await this.#ask()
    }
    await Promise.all(Array.from({ length: window }, one))
  }

  async leave() {
    const { response } = await send(this.#url, { method: 'DELETE', headers: this.#session, agent: this.#agent })
    await textOf(response)
    this.#agent.destroy()
    return response.statusCode
  }

  async #ask() {
    const random = this.#random
    const n = ++this.#asked
    // Ids that come again once they are answered, as those of other clients do.
    const id = n % 50
    const call = new Call(this.#ledger, `${this.#mark}/${n}`)
    const wants = { client: this.#mark, n, updates: random.between(0, 6), waitMs: random.pick([0, 0, 5, 30]) }
    const padding = { answerBytes: random.fraction() < 0.05 ? 200_000 : 0 }
    const params = { name: 'work', arguments: { ...wants, ...padding }, _meta: { progressToken: `p${id}` } }
    const manner = random.pick(['good', 'good', 'slow', 'drops', 'drops', 'vanishes'])
    this.#ledger.requests++
    const body = { jsonrpc: '2.0', id, method: 'tools/call', params }
    const agent = manner === 'good' ? this.#agent : false
    await this.#read(await send(this.#url, { body, headers: this.#session, agent }), call, manner)
    if (manner === 'drops') await this.#comeBack(call)
    if (call.outcome === undefined && (manner === 'vanishes' || call.lastEventId === undefined))
      this.#ledger.abandoned++
    if (call.missed || (call.outcome === 'answered' && call.updates < wants.updates)) this.missed++
  }

  /** Whoever has seen an event goes on behind it, as often as it takes. */
  async #comeBack(call) {
    for (let left = ATTEMPTS; left > 0 && call.outcome === undefined && call.lastEventId !== undefined; left--) {
      const headers = { ...this.#session, 'last-event-id': call.lastEventId }
      const answer = await send(this.#url, { method: 'GET', headers })
      this.resumed++
      if (answer.response.statusCode !== 200) return void answer.breakOff()
      await this.#read(answer, call, this.#random.fraction() < 0.5 ? 'drops' : 'slow')
      await sleep(AGAIN_MS)
    }
  }

  /** Reads an answer to its end, or as far as its manner goes. */
  async #read({ response, breakOff }, call, manner) {
    const isStream = response.headers['content-type'] === 'text/event-stream'
    if (!isStream) return void (call.outcome === undefined && call.take(JSON.parse(await textOf(response))))
    let most = manner === 'drops' || manner === 'vanishes' ? this.#random.between(0, 4) : Number.POSITIVE_INFINITY
    let rest = ''
    try {
      for await (const part of response.setEncoding('utf8')) {
        const blocks = (rest + part).split('\n\n')
        rest = blocks.pop()
        for (const block of blocks) {
          // What is behind it is lost with the connection.
          if (most-- <= 0) break
          call.event(block)
        }
        if (most < 0) break
        if (manner === 'slow') await sleep(SLOW_MS)
      }
    } catch {
      // It broke off by itself: what is known of the call says whether that matters.
    }
    if (most < 0) this.dropped++
    if (most < 0 || manner === 'vanishes') breakOff()
  }
}
