/**
 * Moves bytes between peers with bounds: who fills a full queue is not read from until it has room (contract 8.3).
 *
 * Nothing is dropped here. A source is stopped in the middle of a chunk, after the line that filled the queue, and goes on
 * from there when the queue is below half. A peer that stays full too long is closed by `stuck.ts`.
 */

import type { Batches } from '../wire/batches.ts'
import type { Envelope, IdKey } from '../wire/envelope.ts'
import { settleLentRuns } from '../wire/outbox.ts'
import { type Edit, splice } from '../wire/splice.ts'
import type { Core } from './core.ts'
import { emptySet, ownSet } from './empty.ts'
import { faultLine, type Reason } from './faults.ts'
import { Gate } from './gate.ts'
import type { Client, Peer } from './peers.ts'

export interface FlowHost {
  takeLine(peer: Peer, bytes: Buffer, start: number, end: number): void
  /** The peer's line is longer than allowed. */
  overflowed(peer: Peer): void
  /** The peer has ended its writing side and all its lines are taken. */
  finished(peer: Peer): void
}

/** What is queued for a peer is counted when it is written, or when it is more than this. */
const UNCOUNTED_BYTES = 16 * 1024

export class Flow {
  readonly #core: Core
  readonly #host: FlowHost
  /** Sources that wait because the bus as a whole retains too much. */
  readonly totalGate = new Gate()
  /** Peers whose queue is full now. */
  readonly full = new Set<Peer>()
  #source: Peer | undefined
  /** The bus retains less than before. */
  #isRelieved = false

  constructor(core: Core, host: FlowHost) {
    this.#core = core
    this.#host = host
  }

  /** Bytes have come from `peer`; they are lent, so what must wait is copied. */
  receive(peer: Peer, chunk: Buffer): void {
    if (peer.isDeaf) return
    let taken = 0
    if (peer.blockedOn === undefined && peer.backlog.length === 0) taken = this.#feed(peer, chunk, 0)
    if (taken < chunk.length && !peer.isDeaf) this.#keepRest(peer, chunk, taken)
    this.account(peer)
  }

  /** `peer` will send no more: its last line counts without a newline. What waits behind a full queue comes first. */
  finish(peer: Peer): void {
    peer.hasEnded = true
    if (peer.blockedOn === undefined && peer.backlog.length === 0) this.#finishNow(peer)
  }

  #finishNow(peer: Peer): void {
    if (!peer.isDeaf) {
      const source = this.#source
      this.#source = peer
      peer.splitter.finish((bytes, start, end) => this.#take(peer, bytes, start, end))
      this.#source = source
    }
    // Its last line may have stopped it: it has not finished before it goes on.
    if (peer.isFinished || (peer.blockedOn !== undefined && !peer.isDeaf)) return
    peer.isFinished = true
    this.#host.finished(peer)
  }

  /** Queues `bytes[start, end)` for `to`; whoever is being read from pays for a full queue. */
  send(to: Peer, bytes: Buffer, start: number, end: number): void {
    if (isDelegate(to)) return this.#hand(to, Buffer.from(bytes.subarray(start, end)))
    if (to.batches !== undefined && this.#keep(to, bytes, start, end)) return
    this.#queue(to, bytes, start, end)
  }

  /** There will be no answer to what the client asked with this id: an array of answers no longer waits for it. */
  excuse(client: Peer, key: IdKey): void {
    const { batches } = client
    if (batches !== undefined) this.#sendDue(client, batches, batches.excuse(key))
  }

  /** True: the line is an answer that leaves together with others. */
  #keep(to: Peer, bytes: Buffer, start: number, end: number): boolean {
    const batches = to.batches!
    const due = batches.keep(bytes, start, end, to.outbox.limitBytes)
    if (due !== undefined) this.#sendDue(to, batches, due)
    return due !== undefined
  }

  #sendDue(to: Peer, batches: Batches, due: readonly Buffer[]): void {
    if (batches.isEmpty) to.batches = undefined
    for (const line of due) this.#queue(to, line, 0, line.length)
    this.account(to)
  }

  /** Queues the line at hand for `to`, with edits made. */
  sendEdited(to: Peer, envelope: Envelope, edits: readonly Edit[]): void {
    if (isDelegate(to)) return this.#hand(to, splice(envelope, edits))
    if (to.batches !== undefined) return this.sendLine(to, splice(envelope, edits))
    to.outbox.appendEdited(envelope, edits)
    this.#queued(to)
  }

  /** A delegate has no queue: what it is told it has heard, and whoever it speaks for waits in its place. */
  #hand({ id }: Client, bytes: Buffer): void {
    const by = this.#source?.kind === 'worker' ? this.#source : undefined
    const source = by === undefined ? undefined : { worker: by.id, generation: by.generation }
    this.#core.actions.push({ do: 'said', client: id, bytes, source })
  }

  #queue(to: Peer, bytes: Buffer, start: number, end: number): void {
    to.outbox.append(bytes, start, end)
    this.#queued(to)
  }

  #queued(to: Peer): void {
    this.#touch(to)
    if (to.outbox.isFull) this.#stopSource(to)
    // After that: who waits for the whole bus only would fill this queue further when the bus has room.
    const isLate = to.outbox.retainedBytes > to.countedBytes + UNCOUNTED_BYTES
    if (isLate || to.outbox.isStalled || this.#isOverTotal()) this.account(to)
  }

  #stopSource(to: Peer): void {
    this.#noteFull(to)
    const source = this.#source
    if (source !== undefined) this.#hold(source, to.gate)
  }

  /** Queues the line for somebody for whom nobody is held up: who sends looks for room first. */
  sendAside(to: Peer, line: Buffer): void {
    const source = this.#source
    this.#source = undefined
    this.sendLine(to, line)
    this.#source = source
  }

  /** A line that the bus itself has made. */
  sendLine(to: Peer, line: Buffer): void {
    this.send(to, line, 0, line.length)
  }

  /** An answer of the bus's own. */
  sendFault(client: Client, idSpelling: string, reason: Reason, detail?: Record<string, unknown>): void {
    this.announceFault(client, idSpelling, reason)
    this.sendLine(client, faultLine(idSpelling, reason, detail))
  }

  /** A door that carries messages is told that the answer which follows is one of the bus's own. */
  announceFault(client: Client, idSpelling: string, reason: Reason): void {
    if (client.carriesMessages) this.#core.actions.push({ do: 'faulted', client: client.id, id: idSpelling, reason })
  }

  /** The system has taken what was queued for `peer`, or a part of it. */
  wrote(peer: Peer, pendingBytes: number): void {
    peer.outbox.wrote(pendingBytes)
    if (!peer.outbox.isStalled && !peer.outbox.isEmpty) this.#touch(peer)
    this.account(peer)
    if (!peer.outbox.isReleased) return
    this.full.delete(peer)
    peer.stuckMs = 0
    this.release(peer.gate)
  }

  /** `source` has filled the queue of `to` by other ways than its own lines. */
  fill(source: Peer, to: Peer): void {
    if (!source.isDeaf) this.#hold(source, to.gate)
  }

  /**
   * It waits here unless a queue holds it up already: one line may fill several, and it waits for one after the other. That
   * the bus as a whole has room again must not let it go on into a full one.
   */
  #hold(source: Peer, gate: Gate): void {
    const { blockedOn } = source
    if (blockedOn === undefined || blockedOn === this.totalGate) this.block(source, gate)
    else if (blockedOn !== gate && gate.owner !== undefined) source.filled = ownSet(source.filled).add(gate.owner)
  }

  /** What held it up has room: it waits for the next one that it has filled and that is full still. */
  #holdAgain(source: Peer): void {
    for (const to of source.filled) {
      if (source.blockedOn !== undefined || source.isDeaf) return
      source.filled.delete(to)
      if (this.full.has(to)) this.block(source, to.gate)
    }
  }

  block(source: Peer, gate: Gate): void {
    source.blockedOn?.sources.delete(source)
    source.blockedOn = gate
    gate.sources = ownSet(gate.sources).add(source)
    if (source.isPaused) return
    source.isPaused = true
    // Whoever it speaks for fills the queue as well.
    const principal = source.kind === 'client' && source.isDelegate ? source.behalf : undefined
    if (principal !== undefined && !principal.isDeaf) this.#hold(principal, gate)
    this.#core.actions.push(
      source.kind === 'client'
        ? { do: 'pause-client', client: source.id }
        : { do: 'pause-worker', worker: source.id, generation: source.generation },
    )
  }

  /** Everybody who waited goes on where it stopped, if nothing else holds it up. */
  release(gate: Gate): void {
    if (gate.sources.size === 0) return
    const sources = [...gate.sources]
    gate.sources.clear()
    for (const source of sources) source.blockedOn = undefined
    for (const source of sources) this.#goOn(source)
  }

  /** The peer reads no more: what is queued for it is of no use and holds up nobody. */
  discard(peer: Peer): void {
    peer.outbox.clear()
    this.full.delete(peer)
    this.account(peer)
    this.release(peer.gate)
  }

  /** Nothing more is taken from the peer: half a line of it, which nobody counts any more, is not kept. */
  deafen(peer: Peer): void {
    peer.isDeaf = true
    peer.splitter.clear()
  }

  /** A peer is gone: it fills nothing and is filled by nobody any more. */
  forget(peer: Peer): void {
    this.deafen(peer)
    peer.blockedOn?.sources.delete(peer)
    peer.blockedOn = undefined
    peer.filled = emptySet()
    peer.backlog = []
    peer.backlogBytes = 0
    peer.batches = undefined
    peer.outbox.clear()
    this.full.delete(peer)
    this.#core.retainedBytes -= peer.countedBytes
    peer.countedBytes = 0
    this.release(peer.gate)
    this.#isRelieved = true
  }

  /** Brings the peer's share of what is retained up to date, and stops a large one when the bus retains too much. */
  account(peer: Peer): void {
    // What was begun by one that is not listened to any more is as good as gone.
    const bytes = peer.isDeaf ? peer.retainedBytes - peer.splitter.retainedBytes : peer.retainedBytes
    const grown = bytes - peer.countedBytes
    if (grown === 0) return
    peer.countedBytes = bytes
    this.#core.retainedBytes += grown
    if (grown < 0) this.#isRelieved = true
    if (grown < 0) return
    if (!this.#isOverTotal() || this.#isModest(bytes)) return
    const source = this.#source ?? peer
    if (source.blockedOn === undefined && !source.isDeaf) this.block(source, this.totalGate)
  }

  #isOverTotal(): boolean {
    return this.#core.retainedBytes > this.#core.spec.limits.maxTotalBufferBytes
  }

  /** Who holds little is not stopped for those who hold much: all the modest together hold half of the bound at most. */
  #isModest(bytes: number): boolean {
    const { clients, workers, spec } = this.#core
    return bytes * (clients.size + workers.size) * 2 <= spec.limits.maxTotalBufferBytes
  }

  /**
   * The event is over: whoever waits for the whole bus goes on now, and not in the middle of what others had waiting; false:
   * nothing came of it.
   */
  settle(): boolean {
    if (!this.#isRelieved) return false
    this.#isRelieved = false
    const { retainedBytes, waitingBytes, spec } = this.#core
    const roomBytes = spec.limits.maxTotalBufferBytes / 2
    if (retainedBytes < roomBytes) this.release(this.totalGate)
    // What waits is waiting for their answers.
    else if (retainedBytes - waitingBytes < roomBytes) this.#releaseWorkers(this.totalGate)
    return true
  }

  #releaseWorkers({ sources }: Gate): void {
    const workers = [...sources].filter(({ kind }) => kind === 'worker')
    for (const worker of workers) {
      sources.delete(worker)
      worker.blockedOn = undefined
    }
    for (const worker of workers) this.#goOn(worker)
  }

  #goOn(source: Peer): void {
    this.#holdAgain(source)
    while (source.backlog.length > 0 && source.blockedOn === undefined && !source.isDeaf) {
      const chunk = source.backlog.shift()!
      const from = source.backlogFrom
      source.backlogFrom = 0
      source.backlogBytes -= chunk.length
      const taken = this.#feed(source, chunk, from)
      if (taken < chunk.length && !source.isDeaf) this.#setAside(source, chunk, taken)
    }
    this.account(source)
    if (source.blockedOn !== undefined || source.isDeaf) return
    if (source.hasEnded) return this.#finishNow(source)
    if (!source.isPaused) return
    source.isPaused = false
    this.#core.actions.push(
      source.kind === 'client'
        ? { do: 'resume-client', client: source.id }
        : { do: 'resume-worker', worker: source.id, generation: source.generation },
    )
  }

  /** Takes lines from `chunk[from]` on until one of them stops the peer; returns how far it came. */
  #feed(peer: Peer, chunk: Buffer, from: number): number {
    const source = this.#source
    this.#source = peer
    const taken = peer.splitter.push(chunk, from, (bytes, start, end) => this.#take(peer, bytes, start, end))
    this.#source = source
    settleLentRuns()
    if (!peer.splitter.overflowed) return taken
    if (!peer.isDeaf) this.#host.overflowed(peer)
    return chunk.length
  }

  #keepRest(peer: Peer, chunk: Buffer, from: number): void {
    const rest = Buffer.allocUnsafeSlow(chunk.length - from)
    chunk.copy(rest, 0, from)
    peer.backlog.push(rest)
    peer.backlogBytes += rest.length
  }

  /** The part of a chunk that was not looked at keeps the chunk: it is counted whole. */
  #setAside(peer: Peer, chunk: Buffer, from: number): void {
    peer.backlog.unshift(chunk)
    peer.backlogFrom = from
    peer.backlogBytes += chunk.length
  }

  #take(peer: Peer, bytes: Buffer, start: number, end: number): boolean {
    this.#host.takeLine(peer, bytes, start, end)
    return peer.blockedOn === undefined && !peer.isDeaf
  }

  #touch(peer: Peer): void {
    if (peer.isDirty) return
    peer.isDirty = true
    this.#core.dirty.push(peer)
  }

  #noteFull(peer: Peer): void {
    if (this.full.has(peer)) return
    this.full.add(peer)
    peer.stuckMs = 0
  }
}

function isDelegate(peer: Peer): peer is Client {
  return peer.kind === 'client' && peer.isDelegate
}
