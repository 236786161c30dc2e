/** Attacks by number: sessions, requests, subscriptions, answers. Each is one client that never stops. */
import { Books, HostileClient } from './hostile-client.mjs'

const MILLION = 1_000_000
const PER_WRITE = 200
const MODERN =
  '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}'

/** Writes `count` lines; with a `window`, no more than that many are ahead of the answers. */
export async function flood(client, books, count, spell, window = Number.POSITIVE_INFINITY) {
  for (let n = 1; n <= count && !client.isClosed; n += PER_WRITE) {
    let text = ''
    const end = Math.min(count, n + PER_WRITE - 1)
    for (let each = n; each <= end; each++) text += spell(each)
    await client.write(text)
    while (end - client.answerCount > window && !client.isClosed) await new Promise(setImmediate)
    books.lines = end
  }
  books.check(!client.isClosed, 'the bus closed the connection')
}

async function sessions(address, scale) {
  const books = new Books()
  const count = Math.round(MILLION * scale)
  const client = await HostileClient.open(address, books, count)
  const spell = (n) => `{"id":${n},"method":"work","sessionId":"hostile-session-${n}","pool":"target"}\n`
  await flood(client, books, count, spell, 2_000)
  await client.heard(count)
  const { too_many_sessions: refused = 0 } = books.errors
  books.check(refused === count - 100_000, `${refused} of ${count} sessions were refused instead of all beyond 100,000`)
  client.leave()
  return books
}

/** Nothing of this is ever answered by the worker: what max_pending_per_client lets through stays open. */
async function openForEver(address, count, spell, allowed) {
  const books = new Books()
  const client = await HostileClient.open(address, books, count)
  await flood(client, books, count, spell)
  await client.heard(count - allowed)
  const { too_many_pending: refused = 0 } = books.errors
  books.check(
    refused === count - allowed,
    `${refused} of ${count} requests were refused instead of all beyond ${allowed}`,
  )
  client.leave()
  return books
}

const requests = (address, scale) =>
  openForEver(
    address,
    Math.round(MILLION * scale),
    (n) => `{"id":${n},"method":"work","pool":"target","params":{"silent":true}}\n`,
    4_096,
  )

const subscriptions = (address, scale) =>
  openForEver(
    address,
    Math.round((MILLION / 4) * scale),
    (n) =>
      `{"jsonrpc":"2.0","id":${n},"method":"subscriptions/listen","pool":"mcp","params":{"_meta":${MODERN},"notifications":{"toolsListChanged":true},"silent":true}}\n`,
    4_096,
  )

async function answers(address, scale) {
  const books = new Books()
  const count = Math.round(MILLION * scale)
  const client = await HostileClient.open(address, books, 1)
  await flood(client, books, count, (n) => `{"id":${n},"result":{}}\n`)
  await client.write('{"id":1,"method":"work","pool":"target"}\n')
  await client.heard(1)
  books.check(client.answerCount === 1, 'an answer that nobody asked for was answered')
  client.leave()
  return books
}

/** A bus that is never idle waits for its core like everybody else, and its twin, which sleeps, does not. */
export const BUSY = {
  worst: 5,
  because: 'the bus is at work all the time, on two cores that attacker, workers, clients and twin share with it',
}

export const FLOODS = {
  sessions: { title: 'a million session ids', run: sessions, ...BUSY },
  requests: { title: 'a million outstanding requests', run: requests, ...BUSY },
  subscriptions: { title: 'a quarter of a million subscriptions', run: subscriptions, ...BUSY },
  answers: { title: 'a million answers to questions never asked', run: answers, ...BUSY },
}
