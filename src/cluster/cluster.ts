/**
 * What this node knows of all others, and what passes between them: presence, links and choice in one (contract 14).
 *
 * A pure state machine: messages and the time come in, messages go out; the broker is behind a port. Whoever sends what
 * cannot be read is counted by name, and nothing else comes of it (contract 14.9).
 */
import {
  type AnnouncedPool,
  type Announcement,
  commonVersion,
  isControl,
  MAX_POOLS,
  type NodeState,
  readControl,
  writeAnnouncement,
} from './announcement.ts'
import { type Candidate, chooseNode } from './choice.ts'
import { CLUSTER } from './limits.ts'
import { Link, type LinkCounts, newCounts } from './link.ts'
import { FRAME_HEAD_BYTES, HEAD_BYTES, PROTOCOL } from './message.ts'
import { ALL, agentIn, agentPool, readSubject, subjectOf } from './names.ts'
import { type NodeRow, Presence, type PresenceState } from './presence.ts'
import type { Stream } from './stream.ts'

export interface ClusterOptions {
  readonly cluster: string
  readonly node: string
  readonly version: string
  readonly run: number
  readonly lostAfterMs: number
  readonly chance: () => number
  /** What may be under way to this node; left out: as the table says. */
  readonly underWayBytes?: number
}

export interface ClusterPort {
  /** False: there is no way to the broker now. */
  publish(subject: string, message: Buffer): boolean
  /** `flush` is wanted at the end of this turn. */
  flushSoon(): void
  /** Of other nodes, so many streams are taken here. */
  readonly maxGuests: number
  /** Another node has begun a stream. */
  opened(node: string, stream: Stream, opening: Buffer): void
  /** Who there is, or what they have, is not what it was. */
  changed(): void
  log(level: 'info' | 'warn' | 'error', text: string, about: Record<string, unknown>): void
}

/** What this node says of itself beside its name. */
export interface OwnWord {
  readonly pools: readonly AnnouncedPool[]
  readonly agents: readonly string[]
}

/** Somebody on the way to a pool of a node, until that node is known to count it itself. */
export interface Newcomer {
  readonly sinceMs: number
  stream: Stream | undefined
}

export interface NodeStatus {
  readonly node: string
  readonly state: PresenceState
  readonly version: string | null
  readonly heard_ms: number
  readonly rtt_ms: number | null
  readonly streams: number
  readonly pools: readonly AnnouncedPool[]
  readonly agents: readonly string[]
}

/** Who has spoken nonsense; names beyond the bound are counted together. */
const OTHERS = '*'

export class Cluster {
  readonly node: string
  readonly counts: LinkCounts = newCounts()
  readonly junk = new Map<string, number>()
  /** Nodes that were lost. */
  lost = 0
  readonly #options: ClusterOptions
  readonly #port: ClusterPort
  readonly #presence: Presence
  readonly #links = new Map<string, Link>()
  /** To nodes that are not known any more: their epochs go on where they were, should one be back. */
  readonly #parted = new Map<string, Link>()
  /** Who went to a pool of a node and is not in its last word. */
  readonly #newcomers = new Map<string, Newcomer[]>()
  #own: OwnWord = { pools: [], agents: [] }
  #state: NodeState = 'ready'
  #isConnected = false
  #announcedMs = Number.NEGATIVE_INFINITY
  #isAnnouncementDue = false
  #words = 0
  #isTooMuch = false
  /** The run of the other node of this name that was told of last. */
  #namesake: number | undefined
  #maxMessageBytes: number = CLUSTER.maxMessageBytes
  #maxPayloadBytes: number = CLUSTER.maxAnnouncementBytes

  constructor(options: ClusterOptions, port: ClusterPort) {
    this.#options = options
    this.#port = port
    this.node = options.node
    this.#presence = new Presence(options.lostAfterMs)
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  // ---- the way to the broker ----

  connected(maxPayloadBytes: number, nowMs: number): void {
    this.#isConnected = true
    this.#maxPayloadBytes = maxPayloadBytes
    this.#maxMessageBytes = Math.min(CLUSTER.maxMessageBytes, maxPayloadBytes)
    this.#presence.excuse(nowMs)
    for (const link of this.#links.values()) {
      link.maxMessageBytes = this.#maxMessageBytes
      link.connected(nowMs)
    }
    this.#announce(nowMs)
  }

  disconnected(nowMs: number): void {
    this.#isConnected = false
    this.#presence.parted(nowMs)
    for (const link of this.#links.values()) link.disconnected()
  }

  // ---- what this node says ----

  /** What it has now; it is told at once where it matters, else with the next word. */
  describe(own: OwnWord, isNews: boolean): void {
    this.#own = own
    if (isNews) this.#isAnnouncementDue = true
  }

  leave(state: 'leaving' | 'left', nowMs: number): void {
    this.#state = state
    this.#announce(nowMs)
  }

  #announce(nowMs: number): void {
    this.#announcedMs = nowMs
    this.#isAnnouncementDue = false
    const { version, run } = this.#options
    const word: Announcement = {
      lowest: PROTOCOL.lowest,
      highest: PROTOCOL.highest,
      version,
      run,
      number: ++this.#words,
      state: this.#state,
      ...this.#own,
    }
    if (!this.#isConnected) return
    this.#port.publish(subjectOf(this.#options.cluster, ALL, this.node), this.#asMessage(word))
  }

  /** What nobody could read, or NATS would not carry, is left out: so the node is there, and has nothing for others. */
  #asMessage(word: Announcement): Buffer {
    const message = writeAnnouncement(word)
    const mostBytes = Math.min(CLUSTER.maxAnnouncementBytes, this.#maxPayloadBytes)
    const { pools, agents } = word
    const isTooMuch = message.length > mostBytes || Math.max(pools.length, agents.length) > MAX_POOLS
    const isNews = isTooMuch && !this.#isTooMuch
    this.#isTooMuch = isTooMuch
    if (!isTooMuch) return message
    const about = { pools: pools.length, agents: agents.length, bytes: message.length, most_bytes: mostBytes }
    if (isNews)
      this.#port.log('error', 'what this node exports is too much for an announcement: others see none of it', about)
    return writeAnnouncement({ ...word, pools: [], agents: [] })
  }

  // ---- the clock ----

  tick(nowMs: number): void {
    for (const node of this.#presence.look(nowMs)) this.#giveUp(node, nowMs)
    for (const node of this.#links.keys()) if (this.#presence.find(node) === undefined) this.#part(node)
    const sinceMs = nowMs - this.#announcedMs
    if (sinceMs >= CLUSTER.announceEveryMs || (this.#isAnnouncementDue && sinceMs >= CLUSTER.announceGapMs))
      this.#announce(nowMs)
    const share = this.#share
    for (const link of this.#links.values()) {
      link.share = share
      link.tick(nowMs, this.#options.lostAfterMs)
    }
  }

  flush(nowMs: number): void {
    for (const link of this.#links.values()) link.flush(nowMs)
  }

  /** When the next receipt is due; undefined: none is. */
  get receiptDueMs(): number | undefined {
    let due: number | undefined
    for (const { receiptDueMs } of this.#links.values())
      if (receiptDueMs !== undefined && (due === undefined || receiptDueMs < due)) due = receiptDueMs
    return due
  }

  get #share(): number {
    const { underWayBytes = CLUSTER.underWayBytes } = this.#options
    return Math.max(CLUSTER.leastShareBytes, Math.floor(underWayBytes / Math.max(1, this.#presence.livingCount)))
  }

  // ---- what others say ----

  receive(subject: string, message: Buffer, nowMs: number): void {
    const way = readSubject(this.#options.cluster, subject)
    if (way === undefined) return this.#countJunk(OTHERS)
    // Somebody else who has this name, or says so.
    if (way.from === this.node) return this.#takeNamesake(way.to, message)
    if (isControl(message)) this.#takeControl(way.from, message, nowMs)
    else this.#takeFrames(way.from, message, nowMs)
  }

  /** It asks whether its name is taken: it is. */
  #takeNamesake(to: string, message: Buffer): void {
    const said = isControl(message) ? readControl(message) : undefined
    if (said?.say === 'who') return void (this.#isAnnouncementDue ||= to === this.node)
    if (said?.say === 'here' && said.announcement.run === this.#options.run) return
    this.#countJunk(this.node)
    if (said?.say !== 'here' || said.announcement.run === this.#namesake) return
    this.#namesake = said.announcement.run
    this.#port.log('error', 'another node of this name is in the cluster: give one of them another', {
      node: this.node,
    })
  }

  #takeControl(from: string, message: Buffer, nowMs: number): void {
    const said = readControl(message)
    if (said?.say !== 'here') return this.#countJunk(from)
    const { announcement } = said
    if (this.#presence.isCopy(from, announcement)) return
    if (!this.#hear(from, announcement.run, nowMs)) return
    if (announcement.state === 'left') return this.#takeLeave(from)
    const before = this.#presence.find(from)?.word
    this.#presence.announced(from, announcement)
    for (const { id } of announcement.pools) this.#passWord(keyOf(from, id), nowMs)
    for (const agent of announcement.agents) this.#passWord(keyOf(from, agentPool(agent)), nowMs)
    const version = commonVersion(announcement)
    if (version === undefined && before === undefined)
      this.#port.log('warn', 'a node speaks no version of the protocol that this one does', {
        node: from,
        speaks: [announcement.lowest, announcement.highest],
      })
    if (version !== undefined) this.#linkTo(from, announcement.run, nowMs).version = version
    if (shapeOf(before) !== shapeOf(announcement)) this.#port.changed()
  }

  /** A word counts whoever the node has acknowledged before it spoke; who has not arrived by now does not any more. */
  #passWord(key: string, nowMs: number): void {
    const newcomers = this.#newcomers.get(key)
    if (newcomers === undefined) return
    const { lostAfterMs } = this.#options
    const isUnderWay = ({ sinceMs, stream }: Newcomer): boolean =>
      nowMs - sinceMs < lostAfterMs && (stream === undefined || stream.opening !== undefined)
    const left = newcomers.filter(isUnderWay)
    if (left.length === 0) this.#newcomers.delete(key)
    else this.#newcomers.set(key, left)
  }

  #takeLeave(node: string): void {
    this.#presence.left(node)
    this.#part(node)
    this.#port.log('info', 'node has left', { node })
    this.#port.changed()
  }

  /** It is not known any more. */
  #part(node: string): void {
    for (const key of this.#newcomers.keys()) if (key.startsWith(keyOf(node, ''))) this.#newcomers.delete(key)
    const link = this.#links.get(node)
    if (link === undefined) return
    this.#links.delete(node)
    link.giveUp()
    link.disconnected()
    this.#parted.delete(node)
    this.#parted.set(node, link)
    if (this.#parted.size > CLUSTER.maxNodes) this.#parted.delete(this.#parted.keys().next().value!)
  }

  #takeFrames(from: string, message: Buffer, nowMs: number): void {
    if (message.length < HEAD_BYTES) return this.#countJunk(from)
    const run = message.readUInt32BE(1)
    // A copy is no sign of life; what it says changes nothing where it was said before.
    const isCopy = this.#links.get(from)?.isCopy(message) === true
    if (isCopy ? !this.#presence.isLiving(from) : !this.#hear(from, run, nowMs)) return
    const link = this.#linkTo(from, run, nowMs)
    const before = link.counts.junk
    if (!link.receive(message, nowMs) || link.counts.junk > before) this.#countJunk(from)
  }

  /** False: it is nobody whom we listen to. */
  #hear(node: string, run: number, nowMs: number): boolean {
    const what = this.#presence.heard(node, run, nowMs)
    if (what === undefined) this.#countJunk(node)
    if (what === undefined || what === 'same') return what === 'same'
    if (what === 'lost') this.lost++
    const text = { joined: 'node has joined', back: 'node is back', lost: 'node is lost: it has begun anew' } as const
    this.#port.log(what === 'lost' ? 'warn' : 'info', text[what as keyof typeof text], { node })
    // All that had to do with the run before is over.
    this.#links.get(node)?.meet(run)
    this.#port.changed()
    return true
  }

  #giveUp(node: string, nowMs: number): void {
    const row = this.#presence.find(node)
    const wasLeaving = row?.word?.state === 'leaving'
    if (!wasLeaving) this.lost++
    this.#port.log(wasLeaving ? 'info' : 'warn', wasLeaving ? 'node has left' : 'node is lost', {
      node,
      silent_ms: Math.round(nowMs - (row?.heardMs ?? nowMs)),
    })
    this.#links.get(node)?.giveUp()
    this.#port.changed()
  }

  #linkTo(node: string, run: number, nowMs: number): Link {
    const known = this.#links.get(node)
    if (known !== undefined) {
      known.meet(run)
      return known
    }
    const link = this.#parted.get(node) ?? this.#newLink(node)
    this.#parted.delete(node)
    link.meet(run)
    link.share = this.#share
    link.maxMessageBytes = this.#maxMessageBytes
    this.#links.set(node, link)
    if (this.#isConnected) link.connected(nowMs)
    return link
  }

  #newLink(node: string): Link {
    const { cluster, run } = this.#options
    const subject = subjectOf(cluster, node, this.node)
    return new Link(node, run, this.counts, {
      send: (message) => this.#port.publish(subject, message),
      flushSoon: () => this.#port.flushSoon(),
      hasRoom: () => this.guests < this.#port.maxGuests + CLUSTER.maxTurnedAway,
      opened: (stream, opening) => this.#port.opened(node, stream, opening),
    })
  }

  #countJunk(from: string): void {
    const name = this.junk.has(from) || this.junk.size < CLUSTER.maxNodes ? from : OTHERS
    this.junk.set(name, (this.junk.get(name) ?? 0) + 1)
  }

  // ---- what the rest of the bus asks ----

  /** An opening and what follows it share a message. */
  get maxOpeningBytes(): number {
    return Math.min(CLUSTER.maxOpeningBytes, this.#maxMessageBytes - HEAD_BYTES - 3 * FRAME_HEAD_BYTES)
  }

  /** A stream to a pool of that node; undefined: the node is not there. */
  open(node: string, opening: Buffer, nowMs: number): Stream | undefined {
    const row = this.#presence.find(node)
    const link = this.#links.get(node)
    if (link === undefined || row === undefined || row.lostAtMs !== undefined) return undefined
    return link.open(opening, nowMs)
  }

  /** Somebody goes to a pool of that node: until a word that counts it only we know. Its stream is set when there is one. */
  expect(node: string, pool: string, nowMs: number): Newcomer {
    const key = keyOf(node, pool)
    const newcomer: Newcomer = { sinceMs: nowMs, stream: undefined }
    const others = this.#newcomers.get(key)
    if (others === undefined) this.#newcomers.set(key, [newcomer])
    else others.push(newcomer)
    return newcomer
  }

  /** The node that takes a newcomer of the pool. */
  choose(pool: string): string | undefined {
    const candidates: Candidate[] = []
    const agent = agentIn(pool)
    for (const { node, word } of this.#available()) {
      const row = agent === undefined ? word?.pools.find(({ id }) => id === pool) : loadOfAgent(word, agent)
      if (row !== undefined)
        candidates.push({ node, ...row, since: this.#newcomers.get(keyOf(node, pool))?.length ?? 0 })
    }
    return chooseNode(candidates, this.#options.chance)
  }

  *#available(): Generator<NodeRow> {
    for (const row of this.#presence.rows)
      if (row.lostAtMs === undefined && row.word?.state === 'ready' && commonVersion(row.word) !== undefined) yield row
  }

  /** All that is to be known of the others. */
  nodes(nowMs: number): NodeStatus[] {
    return [...this.#presence.rows].map((row) => {
      const link = this.#links.get(row.node)
      return {
        node: row.node,
        state: this.#presence.stateOf(row, nowMs),
        version: row.word?.version ?? null,
        heard_ms: Math.max(0, Math.round(nowMs - row.heardMs)),
        rtt_ms: link?.rttMs ?? null,
        streams: link?.streams ?? 0,
        pools: row.word?.pools ?? [],
        agents: row.word?.agents ?? [],
      }
    })
  }

  get streams(): number {
    let count = 0
    for (const link of this.#links.values()) count += link.streams
    return count
  }

  /** Of others, here. */
  get guests(): number {
    let count = 0
    for (const link of this.#links.values()) count += link.guests
    return count
  }

  /** Everything that was said to others is there. */
  get isQuiet(): boolean {
    for (const link of this.#links.values()) if (!link.isQuiet) return false
    return true
  }
}

/** What an agent has to do is not announced: only who is on the way there counts. */
function loadOfAgent(word: Announcement | undefined, agent: string) {
  return word?.agents.includes(agent) === true ? { ready: 1, outstanding: 0, streams: 0 } : undefined
}

/** What of a word changes what can be had where. */
function shapeOf(word: Announcement | undefined): string | undefined {
  if (word === undefined) return undefined
  const pools = word.pools.map(({ id, protocol, era, maxLineBytes, isPortable, ready }) => [
    id,
    protocol,
    era,
    maxLineBytes,
    isPortable,
    ready > 0,
  ])
  return JSON.stringify([word.state, pools, word.agents])
}

function keyOf(node: string, pool: string): string {
  return `${node} ${pool}`
}
