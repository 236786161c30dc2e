/** What two links owe each other where the way between them is bad (contract 14.5). */
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { CLUSTER } from './limits.ts'
import { Link, newCounts } from './link.ts'
import { FRAME, type Frame, MAX_EPOCH, writeFrameHead, writeHead } from './message.ts'
import type { Stream } from './stream.ts'

interface End {
  readonly link: Link
  readonly sent: Buffer[]
  readonly opened: Stream[]
}

function end(name: string, run: number, otherRun: number, most = Number.POSITIVE_INFINITY): End {
  const sent: Buffer[] = []
  const opened: Stream[] = []
  const link: Link = new Link(name, run, newCounts(), {
    send: (message) => sent.push(message) > 0,
    flushSoon: () => {},
    hasRoom: () => link.guests < most,
    opened: (stream) => {
      stream.adopt({ received: () => {}, drained: () => {}, ended: () => opened.splice(opened.indexOf(stream), 1) })
      opened.push(stream)
    },
  })
  link.meet(otherRun)
  link.connected(0)
  return { link, sent, opened }
}

function exchange(one: End, other: End, nowMs: number): void {
  for (let round = 0; round < 5; round++) {
    for (const message of one.sent.splice(0)) other.link.receive(message, nowMs)
    for (const message of other.sent.splice(0)) one.link.receive(message, nowMs)
    one.link.flush(nowMs)
    other.link.flush(nowMs)
  }
}

test('what is sent again needs credit as what is new does', () => {
  verifies('14.5-credit')
  const a = end('b', 1, 2)
  const b = end('a', 2, 1)
  exchange(a, b, 1)
  for (let n = 0; n < 4; n++) a.link.open(Buffer.from('{}'), 2).write([Buffer.alloc(60_000)])
  a.link.flush(2)
  // Nothing of it arrives; whatever is tried, no more is under way than may be.
  let bytes = 0
  for (let nowMs = 100; nowMs < 2_000; nowMs += 100) {
    a.link.tick(nowMs, 5_000)
    for (const message of a.sent.splice(0)) bytes += message.length
  }
  expect(bytes).toBeLessThan(2 * CLUSTER.leastShareBytes + CLUSTER.maxMessageBytes)
})

test('who was taken for another run in between finds that it was given up', () => {
  verifies('14.5-epochs')
  const a = end('b', 1, 2)
  const b = end('a', 2, 1)
  exchange(a, b, 1)
  a.link.open(Buffer.from('{}'), 2).write([Buffer.from('x')])
  a.link.flush(2)
  exchange(a, b, 3)
  expect(b.opened).toHaveLength(1)
  // A word of a run that is over comes late.
  a.link.meet(77)
  a.link.meet(2)
  a.link.ping()
  exchange(a, b, 4)
  expect([a.link.streams, b.link.streams, b.opened.length]).toEqual([0, 0, 0])
})

test('no number that the other says makes what is sent to it impossible', () => {
  verifies('14.9-hostile')
  const { link, sent } = end('b', 1, 2)
  const head = { version: 1, fromRun: 2, toRun: 1, epoch: 0, position: 0, read: 0, share: 2 ** 32 - 1 }
  const numbers = [Number.MAX_SAFE_INTEGER, 2 ** 60, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]
  for (const number of numbers) {
    expect(link.receive(writeHead({ ...head, position: number }), 1)).toBe(false)
    link.receive(writeHead({ ...head, read: number }), 1)
  }
  expect(link.receive(writeHead({ ...head, position: 2 ** 52 }), 1)).toBe(true)
  expect(link.receive(writeHead({ ...head, epoch: MAX_EPOCH }), 1)).toBe(true)
  link.giveUp()
  link.ping()
  expect(link.epoch).toBe(MAX_EPOCH)
  expect(sent.length).toBeGreaterThan(0)
})

/** A message of nothing but openings, of a node that never says that it has read anything. */
function openings(from: number, to: number, position: number): Buffer {
  const parts = [writeHead({ version: 1, fromRun: 2, toRun: 1, epoch: 0, position, read: 0, share: 2 ** 31 })]
  for (let stream = from; stream <= to; stream++) {
    const frame: Frame = { type: FRAME.open, isReceivers: false, stream, offset: 0, bytes: Buffer.from('{}') }
    parts.push(writeFrameHead(frame), frame.bytes)
  }
  return Buffer.concat(parts)
}

test('one stream more than there is room for is gone at once, and its other end is told', () => {
  verifies('14.9-bounds')
  const a = end('b', 1, 2, 3)
  const b = end('a', 2, 1)
  exchange(a, b, 1)
  const lost: number[] = []
  for (let n = 0; n < 5; n++) {
    const stream = b.link.open(Buffer.from('{}'), 2)
    stream.owner = {
      received: () => {},
      drained: () => {},
      ended: ({ reason }) => lost.push(reason === 'lost' ? n : -1),
    }
    stream.write([Buffer.from('x')])
  }
  b.link.flush(2)
  exchange(a, b, 3)
  expect([a.link.guests, b.link.streams, lost]).toEqual([3, 3, [3, 4]])
})

test('whoever opens streams and never hears of their end is given up, not remembered', () => {
  verifies('14.9-bounds')
  const { link, opened, sent } = end('b', 1, 2)
  let nowMs = 0
  for (let n = 0, position = 0; n < 10; n++) {
    const message = openings(n * 300 + 1, (n + 1) * 300, position)
    position += message.length
    link.receive(message, nowMs)
    // Each is refused, and nobody acknowledges that.
    for (const stream of opened.splice(0)) stream.leave({ reason: 'refused' }, true)
    for (const untilMs = nowMs + 3_000; nowMs < untilMs; nowMs += CLUSTER.lookEveryMs) link.tick(nowMs, 2_000)
  }
  expect(link.epoch).toBeGreaterThan(0)
  expect(link.streams).toBe(0)
  // So nothing is left to be told again and again.
  sent.length = 0
  for (const untilMs = nowMs + 3_000; nowMs < untilMs; nowMs += CLUSTER.lookEveryMs) link.tick(nowMs, 2_000)
  expect(sent.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(1_000)
})

test('whoever passes over many streams is believed within the bound, and costs no more than others', () => {
  verifies('14.9-bounds')
  const { link, opened } = end('b', 1, 2)
  link.receive(openings(60_000, 60_000, 0), 1)
  link.receive(openings(7, 7, 1_000), 1)
  link.receive(openings(7, 7, 2_000), 1)
  link.receive(openings(200_000, 200_000, 3_000), 1)
  expect(opened.map(({ number }) => number)).toEqual([60_000, 7])
})
