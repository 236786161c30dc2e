/**
 * Fuzzes the web door of the real program: heads, bodies and frames, many connections at once, beside a client that behaves.
 *
 * Afterwards the bus must be as it was: its workers ready, no client left, no descriptor more, and no more memory than it may hold.
 */
import { eventually } from '../../chaos/stage/waiting.mjs'
import { escapeBytes, unescapeBytes } from '../corpus.mjs'
import { GoodClient } from '../doors/good-client.mjs'
import { SocketHouse } from '../doors/house.mjs'
import { Talks } from './conversation.mjs'
import { visit } from './visit.mjs'

const MAX_FINDINGS = 5
const AT_ONCE = 16
const PROGRESS_EVERY = 200
const REST_MS = 20_000
const SIZES = [65_536]

/** What was found once is sent again as it was; only that nobody is harmed can be said of it. */
function keptTalks(corpus) {
  return corpus.lines('web').map((line) => {
    const bytes = unescapeBytes(line)
    const way = bytes.subarray(0, 4).toString() === 'GET ' ? 'wounded frames' : 'wounded http'
    return { way, bytes, sizes: SIZES, tokens: [], issued: new Set(), inputs: 1 }
  })
}

export async function knockAtWeb(random, count, given) {
  const startMs = performance.now()
  const house = await SocketHouse.open(given.program, 'web')
  const tally = { name: 'web', inputs: 0, findings: 0, kinds: {} }
  const complain = (finding) => {
    tally.findings++
    given.tell(`FOUND at the web door: ${finding}`)
  }
  const talks = new Talks(random)
  const kept = keptTalks(given.corpus)
  let connections = 0
  const knockOn = async () => {
    while ((tally.inputs < count || kept.length > 0) && tally.findings < MAX_FINDINGS) {
      const talk = kept.pop() ?? talks.next()
      tally.inputs += talk.inputs
      tally.kinds[talk.way] = (tally.kinds[talk.way] ?? 0) + 1
      if (connections++ % PROGRESS_EVERY === 0) given.progress(`web ${tally.inputs}`)
      const finding = await visit(house.web, talk)
      if (finding === undefined) continue
      const sent = escapeBytes(talk.bytes)
      given.corpus.keep('web', sent)
      complain(`${finding}\n  sent: ${sent.slice(0, 4000)}`)
    }
  }
  try {
    const before = await house.descriptors()
    const neighbour = new GoodClient(house)
    await Promise.all(Array.from({ length: AT_ONCE }, knockOn))
    const disturbed = await neighbour.end()
    if (disturbed !== undefined) complain(disturbed)
    if (!(await eventually(async () => (await house.clients()) === 0, REST_MS, 100)))
      complain(`clients: ${await house.clients()} are left`)
    for (const leaked of await house.leakedSince(before)) complain(`descriptor: ${leaked} is left open`)
    for (const complaint of await house.complaints()) complain(complaint)
    tally.note = `${connections} connections; neighbour answered ${neighbour.answered}; no descriptor left`
  } finally {
    await house.close()
  }
  tally.seconds = (performance.now() - startMs) / 1000
  return tally
}
