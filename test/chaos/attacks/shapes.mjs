/** Attacks by shape: lines that are too deep, too long, cut off, or never finished. Each goes on for a while. */
import { sleep } from '../stage/waiting.mjs'
import { BUSY } from './floods.mjs'
import { Books, HostileClient } from './hostile-client.mjs'

const LINE_LIMIT = 1024 * 1024
const DURATION_MS = 6_000

/** Repeats `strike` with a new number each time until the time is over. */
async function again(scale, strike) {
  const books = new Books()
  const endMs = performance.now() + DURATION_MS * Math.max(scale, 0.5)
  for (let round = 1; performance.now() < endMs; round++) await strike(books, round)
  return books
}

/** A line that costs its sender the connection, with one error that says why. */
const fatal = (line, reason) => (address, scale) =>
  again(scale, async (books) => {
    const client = await HostileClient.open(address, books)
    await client.write(line)
    books.lines++
    books.check(await client.closed(), `the connection stays open after ${reason}`)
    books.check(client.answerCount === 1, `${client.answerCount} lines came instead of one error`)
    client.leave()
  })

/** Lines as long as they may be, which are as good as any other. */
const lawful = (spell) => (address, scale) =>
  again(scale, async (books) => {
    const client = await HostileClient.open(address, books, 3)
    for (let n = 1; n <= 3; n++) await client.write(spell(n))
    books.lines += 3
    await client.heard(3, 20_000)
    client.leave()
  })

const pad = (before, filling, after) => {
  const room = LINE_LIMIT - before.length - after.length
  return `${before}${filling.repeat(Math.floor(room / filling.length))}${after}\n`
}
const DEPTH = 500_000

const LORISES = 300
const PIECE = 'z'.repeat(8_000)
const PIECES = 75

/** Many connections that each add to a line little by little and never end it. */
async function slowLoris(address, scale) {
  const books = new Books()
  const clients = []
  for (let index = 0; index < LORISES; index++) clients.push(await HostileClient.open(address, books))
  for (const { socket } of clients) socket.write('{"id":1,"method":"')
  for (let piece = 0; piece < PIECES; piece++) await addToAll(clients, books, PIECE)
  const endMs = performance.now() + 8_000 * Math.max(scale, 0.7)
  while (performance.now() < endMs) await addToAll(clients, books, 'z')
  books.errors['closed by the bus'] = clients.filter(({ isClosed }) => isClosed).length
  for (const client of clients) client.leave()
  return books
}

async function addToAll(clients, books, text) {
  for (const [index, { socket, isClosed }] of clients.entries()) {
    if (!isClosed) socket.write(text)
    books.lines++
    if (index % 30 === 0) await sleep(5)
  }
}

/** Half a line and gone, or half a line and the end of input, which makes it a whole one. */
const halfLines = (address, scale) =>
  again(scale, async (books, round) => {
    const client = await HostileClient.open(address, books)
    client.socket.write('{"id":1,"method":"work","pool":"target","params":{"text":"\u00e9'.slice(0, 10 + (round % 50)))
    books.lines++
    if (round % 2 === 0) return client.leave()
    client.socket.end()
    await client.closed()
    books.check(client.answerCount === 1, 'half a line at the end of input was not answered with an error')
  })

export const SHAPES = {
  'slow-loris': {
    title: '300 connections that each add to a line little by little, up to 600 kB, and never end it',
    run: slowLoris,
    ...BUSY,
  },
  nesting: { title: 'a line of 1 MiB of `[`', run: fatal(`${'['.repeat(LINE_LIMIT)}\n`, 'not_json') },
  'lawful-nesting': {
    title: `params nested ${DEPTH.toLocaleString('en-US')} deep, which is JSON`,
    run: lawful(
      (n) => `{"id":${n},"method":"work","pool":"target","params":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}}\n`,
    ),
  },
  keys: {
    title: 'keys of a megabyte',
    run: lawful((n) => pad(`{"id":${n},"method":"work","pool":"target","`, 'k', '":1}')),
  },
  ids: {
    title: 'ids of a megabyte',
    run: fatal(pad('{"id":"', 'i', '","method":"work","pool":"target"}'), 'bad_envelope'),
  },
  batches: {
    title: 'batches of a thousand requests',
    run: fatal(`[${Array.from({ length: 1_000 }, (_, n) => `{"id":${n},"method":"work"}`)}]\n`, 'bad_envelope'),
  },
  'half-lines': { title: 'half lines, with and without the end of input', run: halfLines },
}
