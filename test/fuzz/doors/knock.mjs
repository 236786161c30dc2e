/**
 * Fuzzes one door of the real program: many connections at once, each with many lines, beside a client that behaves.
 *
 * The corpus goes first, that of the envelope too, each input on a connection of its own. A failing connection is
 * repeated with fewer lines as long as it fails in the same way, then printed and kept.
 */
import { escapeBytes, unescapeBytes } from '../corpus.mjs'
import { shrinkList } from '../shrink.mjs'
import { GoodClient } from './good-client.mjs'
import { SocketHouse, StdioHouse } from './house.mjs'
import { makePlan, planFor } from './plan.mjs'
import { visit } from './visit.mjs'

const MAX_FINDINGS = 5
const SHRINK_ATTEMPTS = 120
const SHRINK_TIMEOUT_MS = 3_000
const PROGRESS_EVERY = 100

/** A start of the bus is dear: at the stdio door a connection carries more. */
const DOORS = {
  stdio: { open: StdioHouse.open, atOnce: 2, mostLines: 500, hasNeighbour: false },
  unix: { open: (program) => SocketHouse.open(program, 'unix'), atOnce: 16, mostLines: 16, hasNeighbour: true },
  tcp: { open: (program) => SocketHouse.open(program, 'tcp'), atOnce: 16, mostLines: 16, hasNeighbour: true },
}

const linesOf = (bytes) =>
  bytes
    .toString('latin1')
    .split('\n')
    .map((line) => Buffer.from(line, 'latin1'))

/** At a door where each connection is dear, everything harmless of the corpus shares one, and each reason to close has one. */
function plansOf(corpus, { mostLines }) {
  const kept = corpus.lines('doors').map((line) => linesOf(unescapeBytes(line)))
  const single = corpus.lines('envelope').map((line) => [unescapeBytes(line)])
  const plans = [...kept, ...single].map((lines) => planFor(lines))
  if (mostLines < 100) return plans
  const harmless = plans.filter(({ fault }) => fault === undefined).flatMap(({ lines }) => lines)
  const byReason = new Map(plans.filter(({ fault }) => fault).map((plan) => [plan.fault.reason, plan]))
  return [planFor(harmless), ...byReason.values()]
}

class Knocking {
  tally
  #house
  #given

  constructor(name, house, given) {
    this.#house = house
    this.#given = given
    this.tally = { name, inputs: 0, findings: 0, connections: 0, kinds: {} }
  }

  async take(plan) {
    const { tally } = this
    tally.inputs += plan.lines.length
    const kind = plan.fault?.reason ?? 'served'
    tally.kinds[kind] = (tally.kinds[kind] ?? 0) + 1
    if (tally.connections++ % PROGRESS_EVERY === 0) this.#given.progress(`${tally.name} ${tally.inputs}`)
    const finding = await visit(this.#house, plan)
    if (finding !== undefined) await this.#report(plan, finding)
  }

  async #report(plan, finding) {
    if (++this.tally.findings > MAX_FINDINGS) return
    const kind = finding.split(':')[0]
    const fails = async (lines) => {
      const again = await visit(this.#house, planFor(lines, plan), SHRINK_TIMEOUT_MS)
      return again?.split(':')[0] === kind
    }
    const isSteady = await fails(plan.lines)
    const lines = isSteady ? await shrinkList(plan.lines, fails, SHRINK_ATTEMPTS) : plan.lines
    const kept = escapeBytes(
      Buffer.concat(lines.flatMap((line, at) => (at === 0 ? [line] : [Buffer.from('\n'), line]))),
    )
    this.#given.corpus.keep('doors', kept)
    const manner = JSON.stringify({ ...plan, lines: undefined, requests: undefined, junk: plan.junk.length })
    this.complain(
      `${finding}${isSteady ? '' : ' (it did not happen again)'}\n  sent: ${kept.slice(0, 4000)}\n  as: ${manner}`,
      0,
    )
  }

  complain(finding, count = 1) {
    this.tally.findings += count
    this.#given.tell(`FOUND at the door ${this.tally.name}: ${finding}`)
  }
}

export async function knock(name, random, count, given) {
  const startMs = performance.now()
  const door = DOORS[name]
  const house = await door.open(given.program)
  const knocking = new Knocking(name, house, given)
  const { tally } = knocking
  const neighbour = door.hasNeighbour ? new GoodClient(house) : undefined
  try {
    const kept = plansOf(given.corpus, door)
    const next = () => kept.pop() ?? makePlan(random, Math.max(1, Math.min(door.mostLines, count >> 1)))
    const knockOn = async () => {
      while ((tally.inputs < count || kept.length > 0) && tally.findings < MAX_FINDINGS) await knocking.take(next())
    }
    await Promise.all(Array.from({ length: door.atOnce }, knockOn))
    const disturbed = await neighbour?.end()
    if (disturbed !== undefined) knocking.complain(disturbed)
    for (const complaint of await house.complaints()) knocking.complain(complaint)
  } finally {
    await house.close()
  }
  if (neighbour !== undefined) tally.note = `${tally.connections} connections; neighbour answered ${neighbour.answered}`
  else tally.note = `${tally.connections} connections`
  tally.seconds = (performance.now() - startMs) / 1000
  return tally
}
