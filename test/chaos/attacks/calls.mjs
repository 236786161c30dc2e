/** Attacks on agents: floods of calls by clients that do not read, of one-shot agents, and by an agent that is deaf. */
import { sleep } from '../stage/waiting.mjs'
import { BUSY, flood } from './floods.mjs'
import { Books, HostileClient } from './hostile-client.mjs'

const DURATION_MS = 6_000
const PER_WRITE = 50
const ANSWER_BYTES = 2_000
const ONESHOTS = 20_000

const spell = (n) => `{"id":${n},"method":"agent::work","params":{"answerBytes":${ANSWER_BYTES}}}\n`

/** Writes as long as the bus takes it, and reads nothing; where the bus closes it for that, it comes again. */
async function unread(address, scale) {
  const books = new Books()
  const endMs = performance.now() + DURATION_MS * Math.max(scale, 0.5)
  while (performance.now() < endMs) await callUnread(address, books, endMs)
  return books
}

async function callUnread(address, books, endMs) {
  const client = await HostileClient.open(address, books)
  client.socket.pause()
  let n = 0
  while (!client.isClosed && performance.now() < endMs) {
    let text = ''
    for (const last = n + PER_WRITE; n < last; ) text += spell(++n)
    books.lines += PER_WRITE
    await Promise.race([client.write(text), sleep(Math.max(0, endMs - performance.now()))])
  }
  client.leave()
}

/** Each is answered once: by its process, or because too many wait. */
async function oneshots(address, scale) {
  const books = new Books()
  const count = Math.round(ONESHOTS * scale)
  const client = await HostileClient.open(address, books, count)
  await flood(client, books, count, (n) => `{"id":${n},"method":"once::work","params":{"client":"x","n":${n}}}\n`)
  await client.heard(count)
  client.leave()
  return books
}

/** The client asks once; its worker does the rest. */
async function deaf(address, scale) {
  const books = new Books()
  const client = await HostileClient.open(address, books)
  await client.write('{"id":1,"method":"deaf::work"}\n')
  books.lines = 1
  await sleep(DURATION_MS * Math.max(scale, 0.5))
  books.check(!client.isClosed, 'the bus closed the client, which did nothing wrong')
  client.leave()
  return books
}

export const CALLS = {
  calls: {
    title: 'an agent called in a flood by clients that do not read their answers',
    run: unread,
    asks: true,
    ...BUSY,
  },
  oneshots: {
    title: '20,000 calls of an agent that is started for each',
    run: oneshots,
    asks: true,
    worst: 6,
    because: 'to start a process keeps the thread that routes for some milliseconds',
  },
  'deaf-caller': {
    title: 'an agent that calls another 200,000 times and does not read its answers',
    run: deaf,
    asks: true,
    ...BUSY,
  },
}
