/**
 * Several kernels and a broker that misbehaves (contract 14.14): it delays, drops, repeats, reorders between subjects, cuts and
 * freezes; nodes die and come back. Whatever it does, every request is answered once, at its client, in order, within bounds,
 * and nothing of an older epoch stays.
 */
import { isControl } from '../../src/cluster/announcement.ts'
import { Chance } from './chance.ts'
import { LOST_AFTER_MS, SimNode } from './cluster-node.ts'
import { demand, Violation } from './violation.ts'

const POOLS = ['p', 'q'] as const
const MOST_GUESTS = 6
const MOST_UNDER_WAY = 4_000
const STEP_MS = 100
/** How many of what was delivered last may come once more. */
const MOST_PAST = 60
/** What a node lets be under way to it where that is to be felt. */
const NARROW_BYTES = 256 * 1024
/** In the head of a message: its version, both runs and the epoch. */
const HEAD_RUNS_BYTES = 13
/** So many are delivered, some at a time, whenever time has passed. */
const CALM_DELIVERIES = 40
/** Beside a share: the message that went beyond it, and what needs no credit. */
const BESIDE_BYTES = 2 * 64 * 1024

interface Letter {
  readonly subject: string
  readonly message: Buffer
}

export interface ClusterOutcome {
  readonly events: number
  readonly answered: number
  readonly lost: number
  readonly reasons: ReadonlyMap<string, number>
}

/** One world from its seed to its end; a broken promise is a value. */
export function simulateCluster({
  seed,
  events,
}: {
  readonly seed: number
  readonly events: number
}): ClusterOutcome & {
  readonly violation: Violation | undefined
} {
  const world = new ClusterWorld(seed)
  try {
    return { ...world.run(events), violation: undefined }
  } catch (cause) {
    const violation = cause instanceof Violation ? cause : new Violation('no crash', String(cause), cause)
    return { ...world.outcome, violation }
  }
}

export class ClusterWorld {
  readonly chance: Chance
  readonly nodes: SimNode[] = []
  /** What is under way, by receiver and sender: in order between two, in none between others. */
  readonly #ways = new Map<string, Letter[]>()
  #events = 0
  #answered = 0
  readonly #reasons = new Map<string, number>()
  #lost = 0
  #nowMs = 1_000
  /** Between two nodes nothing passes, one way or both. */
  readonly #cuts = new Set<string>()
  /** What was delivered last, and to whom. */
  readonly #past: (Letter & { readonly to: string })[] = []
  readonly #underWayBytes: number | undefined
  /** Single messages are lost and nothing else goes wrong: nobody may notice. */
  readonly #isCalm: boolean
  #lostLetterMs = 0

  constructor(seed: number) {
    this.chance = new Chance(seed)
    this.#underWayBytes = this.chance.is(0.5) ? NARROW_BYTES : undefined
    this.#isCalm = this.chance.is(0.25)
    const count = this.chance.between(2, 4)
    for (let n = 0; n < count; n++) this.#addNode(`n${n}`)
  }

  run(events: number): ClusterOutcome {
    while (this.#events < events) this.#isCalm ? this.#stepCalmly() : this.#step()
    this.#heal()
    for (const node of this.nodes) this.#count(node)
    if (this.#isCalm) {
      const failed = this.#reasons.get('node_lost') ?? 0
      demand(failed + this.#lost === 0, 'justified', () => `${failed} requests failed, and no node was lost`)
    }
    return this.outcome
  }

  get outcome(): ClusterOutcome {
    return { events: this.#events, answered: this.#answered, lost: this.#lost, reasons: this.#reasons }
  }

  #addNode(name: string): void {
    // The first has no pool of its own.
    const pools = name === 'n0' ? [] : POOLS.filter(() => this.chance.is(0.8))
    const host = {
      chance: this.chance,
      publish: (from: SimNode, subject: string, message: Buffer) => this.#carry(from, subject, message),
    }
    const node = new SimNode(name, pools, { nowMs: this.#nowMs, underWayBytes: this.#underWayBytes }, host)
    this.nodes.push(node)
    node.connect()
  }

  #carry(from: SimNode, subject: string, message: Buffer): boolean {
    const [, , to] = subject.split('.')
    for (const node of this.nodes) {
      if (node === from || !node.isConnected || (to !== 'all' && to !== node.name)) continue
      const key = `${node.name} ${from.name}`
      if (this.#cuts.has(key)) continue
      const way = this.#ways.get(key) ?? []
      this.#ways.set(key, way)
      way.push({ subject, message: Buffer.from(message) })
      demand(way.length <= MOST_UNDER_WAY, 'bounded', () => `${way.length} messages are under way to ${node.name}`)
      this.#measure(node, way)
    }
    return true
  }

  /** Of one epoch no more is under way between two nodes than the receiver allows. */
  #measure(node: SimNode, way: readonly Letter[]): void {
    const last = epochOf(way.at(-1)!)
    if (last === undefined) return
    let bytes = 0
    for (const letter of way) if (epochOf(letter) === last) bytes += letter.message.length
    const most = node.mostShareBytes + BESIDE_BYTES
    demand(bytes <= most, 'bounded', () => `${bytes} bytes are under way to ${node.name}, which allows ${most}`)
  }

  #step(): void {
    this.#events++
    const { chance } = this
    const roll = chance.next()
    if (roll < 0.45) this.#deliver(chance)
    else if (roll < 0.6) this.#talk()
    else if (roll < 0.75) this.#awake()?.work(chance.is(0.01))
    else if (roll < 0.95) this.#pass(chance.between(1, STEP_MS))
    else if (roll < 0.97) this.#lose()
    else if (roll < 0.975) this.#repeat()
    else if (roll < 0.992) this.#trouble()
    else if (roll < 0.995) this.#cut()
    else if (chance.is(0.15)) this.#replace()
  }

  #stepCalmly(): void {
    this.#events++
    const { chance } = this
    const roll = chance.next()
    if (roll < 0.5) this.#talk()
    else if (roll < 0.8) chance.pick(this.nodes).work(chance.is(0.01))
    else if (roll < 0.97) this.#passCalmly(chance.between(1, STEP_MS))
    else if (this.#nowMs - this.#lostLetterMs > LOST_AFTER_MS) this.#lose()
    else if (chance.is(0.3)) this.#repeat()
  }

  #passCalmly(ms: number): void {
    this.#pass(ms)
    for (let n = 0; n < CALM_DELIVERIES; n++) this.#deliver(this.chance)
  }

  #awake(): SimNode | undefined {
    const awake = this.nodes.filter(({ isFrozen }) => !isFrozen)
    return awake.length === 0 ? undefined : this.chance.pick(awake)
  }

  #deliver(chance: Chance): void {
    const ways = [...this.#ways].filter(([key, way]) => way.length > 0 && !this.#nodeOf(key).isFrozen)
    if (ways.length === 0) return
    const [key, way] = chance.pick(ways)
    const node = this.#nodeOf(key)
    for (let count = chance.between(1, 8); count > 0 && way.length > 0; count--) {
      const { subject, message } = way.shift()!
      if (!node.isConnected) continue
      this.#past.push({ subject, message: Buffer.from(message), to: node.name })
      if (this.#past.length > MOST_PAST) this.#past.shift()
      if (chance.is(0.01)) node.receive(subject, Buffer.from(message))
      node.receive(subject, message)
    }
  }

  /** Something of long ago comes once more, perhaps of a run that is over. */
  #repeat(): void {
    if (this.#past.length === 0) return
    const { to, subject, message } = this.chance.pick(this.#past)
    const node = this.nodes.find(({ name }) => name === to)
    if (node?.isConnected === true && !node.isFrozen) node.receive(subject, Buffer.from(message))
  }

  #nodeOf(key: string): SimNode {
    return this.nodes.find(({ name }) => name === key.split(' ')[0])!
  }

  #talk(): void {
    const { chance } = this
    const node = this.#awake()
    if (node === undefined) return
    const { guests } = node
    if (guests.length === 0 || (guests.length < MOST_GUESTS && chance.is(0.05))) return node.addGuest()
    const guest = chance.pick(guests)
    if (chance.is(0.02)) return node.leave(guest)
    if (guest.isSlow && chance.is(0.3)) return node.read(guest)
    if (chance.is(0.02)) guest.isSlow = true
    if (guest.owed.size > 40) return
    const at = chance.is(0.3) ? `@n${chance.int(4)}` : ''
    node.ask(guest, `${chance.pick(POOLS)}${at}`, chance.is(0.03) ? chance.int(300_000) : chance.int(200))
  }

  /** Time goes by for those that run. */
  #pass(ms: number): void {
    this.#nowMs += ms
    for (const node of this.nodes) if (!node.isFrozen) node.tick(Math.max(0, this.#nowMs - node.nowMs))
  }

  #lose(): void {
    this.#lostLetterMs = this.#nowMs
    const ways = [...this.#ways.values()].filter((way) => way.length > 0)
    if (ways.length > 0) this.chance.pick(ways).shift()
  }

  #trouble(): void {
    const { chance } = this
    const node = chance.pick(this.nodes)
    if (node.isFrozen) node.isFrozen = false
    else if (!node.isConnected) node.connect()
    else if (chance.is(0.4)) node.isFrozen = true
    else {
      for (const [key, way] of this.#ways) if (key.startsWith(`${node.name} `)) way.length = 0
      node.disconnect()
    }
  }

  /** Nothing passes between two, or all passes again. */
  #cut(): void {
    const { chance } = this
    if (this.#cuts.size > 0 && chance.is(0.6)) return this.#cuts.clear()
    const [one, other] = [chance.pick(this.nodes).name, chance.pick(this.nodes).name]
    this.#cuts.add(`${one} ${other}`)
    if (chance.is(0.7)) this.#cuts.add(`${other} ${one}`)
  }

  /** A node is killed, and another one of its name is there. */
  #replace(): void {
    const node = this.chance.pick(this.nodes)
    this.#count(node)
    this.nodes.splice(this.nodes.indexOf(node), 1)
    for (const [key, way] of this.#ways) if (key.startsWith(`${node.name} `)) way.length = 0
    this.#addNode(node.name)
  }

  #count(node: SimNode): void {
    this.#answered += node.answered
    this.#lost += node.cluster.lost
    for (const [reason, count] of node.reasons) this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + count)
  }

  /** All is well from now on: nothing is owed in the end, and nobody is left who belongs to nobody. */
  #heal(): void {
    this.#cuts.clear()
    for (const node of this.nodes) {
      node.isFrozen = false
      if (!node.isConnected) node.connect()
      for (const guest of node.guests) if (guest.isSlow) node.read(guest)
    }
    for (let ms = 0; ms < 20 * LOST_AFTER_MS; ms += STEP_MS) {
      this.#pass(STEP_MS)
      for (let round = 0; round < 40; round++) {
        for (const node of this.nodes) for (let n = 0; n < 4; n++) node.work(false)
        for (const [key, way] of this.#ways) {
          const node = this.#nodeOf(key)
          for (const { subject, message } of way.splice(0)) node.receive(subject, message)
        }
      }
    }
    const owed = this.nodes.flatMap((node) =>
      node.guests.flatMap((guest) => [...guest.owed].map((each) => [node.name, guest.id, ...each])),
    )
    demand(owed.length === 0, 'answered once', () => `never answered: ${JSON.stringify(owed.slice(0, 5))}`)
    const here = this.nodes.reduce((sum, node) => sum + node.strangers, 0)
    const there = this.nodes.reduce((sum, node) => sum + node.streamsOut, 0)
    demand(here <= there, 'nothing left', () => `${here} clients came from other nodes, which have ${there} streams`)
  }
}

/** Of frames, which run has sent them and in which epoch; undefined: it is a word. */
function epochOf({ message }: Letter): string | undefined {
  return isControl(message) ? undefined : message.toString('latin1', 1, HEAD_RUNS_BYTES)
}
