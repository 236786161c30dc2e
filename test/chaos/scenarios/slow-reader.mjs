/** Clients that read one byte a second: one with a worker of its own, one that holds up a worker of others, one that asks little. */
import { Ledger } from '../stage/ledger.mjs'
import { openSocket } from '../stage/player.mjs'
import { pool } from '../stage/stage.mjs'
import { eventually, sleep } from '../stage/waiting.mjs'

const ANSWER_BYTES = 50_000
const CONFIG = {
  pools: [pool('together'), pool('alone'), pool('elsewhere')],
  limits: { max_output_queue: 262_144, backpressure_timeout_sec: 8, blocking_timeout_sec: 2 },
}

export const slowReader = {
  name: 'slow-reader',
  title: 'clients that read one byte a second while others go on',
  async run(stage) {
    const bus = await stage.start(CONFIG)
    const before = await bus.descriptorsAtRest()
    const elsewhere = new Ledger()
    const others = [
      ...(await stage.steady(bus, 4, 'elsewhere', {}, { ledger: elsewhere })),
      ...(await stage.steady(bus, 4, 'together')),
    ]
    const greedy = await TrickleReader.open(bus, 'together', 60)
    const lonely = await TrickleReader.open(bus, 'alone', 60)
    const modest = await TrickleReader.open(bus, 'elsewhere', 1)
    await sleep(12_000)
    stage.fact(`closed after ${seconds(greedy)} when it held up others, after ${seconds(lonely)} when it did not`)
    stage.check(
      greedy.closedMs > 1_500 && greedy.closedMs < 5_000,
      `the reader that holds up others: ${seconds(greedy)}`,
    )
    stage.check(
      lonely.closedMs > 7_000 && lonely.closedMs < 11_500,
      `the reader that holds up nobody: ${seconds(lonely)}`,
    )
    stage.check(modest.closedMs === undefined, 'a slow reader whose queue is not full was closed')
    await modest.readOn()
    stage.check(modest.hasWhole(1), 'the slow reader that asked little did not get its answer')
    await stage.settle(others)
    stage.check(elsewhere.errorCount === 0 && elsewhere.answered > 1_000, 'clients of another worker were held up')
    stage.check(stage.ledger.errorCount === 0, 'clients of the same worker got errors')
    stage.fact(`others at the same worker: ${stage.ledger.answered} answered, on another: ${elsewhere.answered}`)
    stage.ledger.add(elsewhere)
    modest.leave()
    await stage.checkDescriptors(bus, before)
    await stage.finish(bus)
  },
}

const seconds = ({ closedMs }) => (closedMs === undefined ? 'never' : `${(closedMs / 1000).toFixed(1)} s`)

/** Takes one byte a second out of the socket, and nothing is read ahead of it. */
class TrickleReader {
  /** How long the bus bore with it. */
  closedMs
  #socket
  #text = ''
  #pauseMs = 1_000

  static async open(bus, poolId, count) {
    const reader = new TrickleReader()
    const buffer = Buffer.alloc(1)
    reader.#socket = await openSocket(bus.address('unix'), {
      onread: { buffer, callback: () => reader.#take(buffer.toString('latin1')) },
    })
    for (let id = 1; id <= count; id++)
      reader.#socket.write(
        `${JSON.stringify({ id, method: 'work', pool: poolId, params: { answerBytes: ANSWER_BYTES } })}\n`,
      )
    reader.#watch()
    return reader
  }

  /** A socket that is not read does not notice its end, but one that is written to does: empty lines are nothing to the bus. */
  #watch() {
    const startMs = performance.now()
    const knock = setInterval(() => this.#socket.write('\n'), 100)
    const stop = () => clearInterval(knock)
    this.#socket.once('error', () => {
      this.closedMs = performance.now() - startMs
      stop()
    })
    this.#socket.once('close', stop)
  }

  async readOn() {
    this.#pauseMs = 0
    this.#socket.resume()
    await eventually(() => this.#text.endsWith('\n'), 20_000)
  }

  hasWhole(id) {
    const message = JSON.parse(this.#text)
    return message.id === id && message.result.padding.length === ANSWER_BYTES
  }

  leave() {
    this.#socket.destroy()
  }

  #take(text) {
    this.#text += text
    if (this.#pauseMs === 0) return true
    setTimeout(() => this.#socket.resume(), this.#pauseMs)
    return false
  }
}
