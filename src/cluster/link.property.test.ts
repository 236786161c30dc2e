/** Two links and a broker that loses, repeats, delays and breaks: every byte arrives once and in order (contract 14.5). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StreamEnding } from './ending.ts'
import { CLUSTER } from './limits.ts'
import { Link, newCounts } from './link.ts'
import type { Stream, StreamOwner } from './stream.ts'

const LOST_AFTER_MS = 60_000

class Owner implements StreamOwner {
  heard: Buffer[] = []
  ending: StreamEnding | undefined
  /** Something that was written has not left. */
  isBehind = false

  received(bytes: Buffer): void {
    expect(this.ending).toBeUndefined()
    this.heard.push(Buffer.from(bytes))
  }

  drained(): void {
    expect(this.isBehind).toBe(true)
    this.isBehind = false
  }

  ended(ending: StreamEnding): void {
    expect(this.ending).toBeUndefined()
    this.ending = ending
  }

  get bytes(): Buffer {
    return Buffer.concat(this.heard)
  }
}

class Side {
  readonly link: Link
  readonly inbox: Buffer[] = []
  /** Streams that the other side has opened, in order. */
  readonly guests: { stream: Stream; owner: Owner }[] = []
  isUp = true
  readonly #other: () => Side

  constructor(name: string, run: number, other: () => Side) {
    this.#other = other
    this.link = new Link(name, run, newCounts(), {
      send: (message) => {
        if (!this.isUp) return false
        this.#other().inbox.push(Buffer.from(message))
        return true
      },
      flushSoon: () => {},
      hasRoom: () => true,
      opened: (stream) => {
        const owner = new Owner()
        this.guests.push({ stream, owner })
        stream.adopt(owner)
      },
    })
  }
}

class World {
  nowMs = 1_000
  readonly a: Side
  readonly b: Side

  constructor() {
    this.a = new Side('b', 11, () => this.b)
    this.b = new Side('a', 22, () => this.a)
    this.a.link.meet(22)
    this.b.link.meet(11)
    for (const { link } of this.sides) link.connected(this.nowMs)
  }

  get sides(): Side[] {
    return [this.a, this.b]
  }

  flush(): void {
    for (const { link } of this.sides) link.flush(this.nowMs)
  }

  deliver(side: Side): void {
    const message = side.inbox.shift()
    if (message === undefined || !side.isUp) return
    side.link.receive(message, this.nowMs)
    message.fill(0xee)
  }

  setUp(side: Side, isUp: boolean): void {
    if (side.isUp === isUp) return
    side.isUp = isUp
    // The broker forgets what it has not delivered, and the library what it has not sent.
    if (isUp) side.link.connected(this.nowMs)
    else {
      side.inbox.length = 0
      side.link.disconnected()
    }
  }

  pass(ms: number): void {
    this.nowMs += ms
    for (const { link } of this.sides) link.tick(this.nowMs, LOST_AFTER_MS)
  }

  settle(): void {
    for (const side of this.sides) this.setUp(side, true)
    for (let round = 0; round < 400; round++) {
      this.pass(25)
      while (this.sides.some(({ inbox }) => inbox.length > 0)) {
        for (const side of this.sides) this.deliver(side)
        this.flush()
      }
    }
  }
}

type Step =
  | { do: 'write'; who: 0 | 1; bytes: number }
  | { do: 'deliver' | 'drop' | 'repeat' | 'down' | 'up' | 'pause' | 'resume'; who: 0 | 1 }
  | { do: 'flush' }
  | { do: 'pass'; ms: number }

const who = fc.constantFrom<0 | 1>(0, 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      who,
      bytes: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 400_000 })),
    }),
  },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('deliver' as const), who }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'drop' as const,
        'repeat' as const,
        'down' as const,
        'up' as const,
        'pause' as const,
        'resume' as const,
      ),
      who,
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('flush' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 900 }) }) },
)

describe('a link', () => {
  it('hands on every byte once and in order, whatever the broker does', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const world = new World()
        const owner = new Owner()
        const stream = world.a.link.open(Buffer.from('opening'), world.nowMs)
        stream.owner = owner
        const sent: [Buffer[], Buffer[]] = [[], []]
        let counter = 0
        const ends = (): [Stream, Stream | undefined] => [stream, world.b.guests[0]?.stream]
        for (const each of steps) {
          if (each.do === 'flush') world.flush()
          else if (each.do === 'pass') world.pass(each.ms)
          else {
            const side = world.sides[each.who]!
            const end = ends()[each.who]
            if (each.do === 'write' && end !== undefined) {
              const bytes = Buffer.alloc(each.bytes, ++counter % 251)
              sent[each.who]!.push(bytes)
              ;(end.owner as Owner).isBehind = end.write([bytes]) > 0
            } else if (each.do === 'deliver') world.deliver(side)
            else if (each.do === 'drop') side.inbox.shift()
            else if (each.do === 'repeat' && side.inbox[0] !== undefined) side.inbox.push(Buffer.from(side.inbox[0]))
            else if (each.do === 'down') world.setUp(side, false)
            else if (each.do === 'up') world.setUp(side, true)
            else if (each.do === 'pause') end?.pause()
            else if (each.do === 'resume') end?.resume()
          }
          for (const { link } of world.sides) expect(link.streams).toBeLessThanOrEqual(1)
          expect(stream.out.sent - stream.out.acked).toBeLessThanOrEqual(CLUSTER.windowBytes + 1)
        }
        for (const end of ends()) end?.resume()
        world.settle()
        const guest = world.b.guests[0]?.owner
        expect(Buffer.concat(sent[0]).equals(guest?.bytes ?? Buffer.alloc(0))).toBe(true)
        expect(Buffer.concat(sent[1]).equals(owner.bytes)).toBe(true)
        // Whoever was told to wait was told to go on.
        expect([owner.isBehind, guest?.isBehind ?? false]).toEqual([false, false])
        expect(world.b.guests.length).toBeLessThanOrEqual(1)
        expect(owner.ending).toBeUndefined()
      }),
      { numRuns: 400 },
    )
  }, 120_000)
})
