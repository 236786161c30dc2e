/** What two links owe each other where the way between them is bad (contract 14.5). */
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { CLUSTER } from './limits.ts'
import { Link, newCounts } from './link.ts'
import { MAX_EPOCH, writeHead } from './message.ts'
import type { Stream } from './stream.ts'

interface End {
  readonly link: Link
  readonly sent: Buffer[]
  readonly opened: Stream[]
}

function end(name: string, run: number, otherRun: number): End {
  const sent: Buffer[] = []
  const opened: Stream[] = []
  const link = new Link(name, run, newCounts(), {
    send: (message) => sent.push(message) > 0,
    flushSoon: () => {},
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
