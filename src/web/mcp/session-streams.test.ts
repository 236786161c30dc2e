import { describe, expect, test } from 'vitest'
import { MAX_KEPT_BYTES, MAX_KEPT_EVENTS } from './kept-events.ts'
import { ENDED_MS, MAX_HELD, MAX_HELD_BYTES, QUESTION_MS, SessionStreams } from './session-streams.ts'

const line = (text: string): Buffer => Buffer.from(text)
const missedOf = (streams: SessionStreams, id: string): string[] => {
  const resumption = streams.resume(id)
  return resumption.outcome === 'resumed' ? resumption.missed.map((event) => event.line.toString()) : []
}

describe('which stream a message goes to (contract 10.9)', () => {
  test('the only POST; of several the GET stream; without one the newest POST; else none', () => {
    const streams = new SessionStreams('t')
    expect(streams.choose(false)).toBeUndefined()
    const first = streams.openPost()
    expect(streams.choose(false)).toBe(first)
    const { stream: get } = streams.openGet(0)
    expect(streams.choose(false)).toBe(first)
    const second = streams.openPost()
    expect(streams.choose(false)).toBe(get)
    streams.lost(get)
    expect(streams.choose(false)).toBe(second)
    streams.end(first, 0)
    streams.forget(second)
    expect(streams.choose(false)).toBeUndefined()
  })

  test('list changes and updates go to the GET stream or wait for it', () => {
    const streams = new SessionStreams('t')
    streams.openPost()
    expect(streams.choose(true)).toBeUndefined()
    streams.hold(line('a'), { isForGet: true, question: undefined, nowMs: 0 })
    const { stream } = streams.openGet(0)
    expect(streams.choose(true)).toBe(stream)
    expect(streams.release()).toEqual([{ stream, id: `t-${stream}-1`, line: line('a') }])
    expect(streams.release()).toEqual([])
  })

  test('a second GET ends the first', () => {
    const streams = new SessionStreams('t')
    const { stream: first } = streams.openGet(0)
    const { stream: second, ended } = streams.openGet(0)
    expect(ended).toBe(first)
    expect(streams.choose(true)).toBe(second)
    expect(streams.resume(streams.startOf(first))).toEqual({ outcome: 'over' })
  })

  test.each([
    ['messages', MAX_HELD, 1],
    ['bytes', MAX_HELD_BYTES / 1024, 1024],
  ])('so many %s are held, and the oldest give way', (_, count, bytes) => {
    const streams = new SessionStreams('t')
    const hold = (id: string): string[] =>
      streams.hold(Buffer.alloc(bytes), { isForGet: false, question: id, nowMs: 0 })
    const held = Math.min(count, MAX_HELD)
    for (let i = 0; i < held; i++) expect(hold(String(i))).toEqual([])
    expect(streams.heldCount).toBe(held)
    expect(hold('next')).toEqual(['0'])
    expect(streams.droppedCount).toBe(1)
  })

  test('a message larger than all that may be held is given up at once', () => {
    const streams = new SessionStreams('t')
    const large = Buffer.alloc(MAX_HELD_BYTES + 1)
    expect(streams.hold(large, { isForGet: false, question: '7', nowMs: 0 })).toEqual(['7'])
    expect(streams.heldCount).toBe(0)
  })

  test('a question waits for 10 s, other messages longer', () => {
    const streams = new SessionStreams('t')
    streams.hold(line('q'), { isForGet: false, question: '"q"', nowMs: 0 })
    streams.hold(line('n'), { isForGet: false, question: undefined, nowMs: 0 })
    expect(streams.expire(QUESTION_MS - 1)).toEqual([])
    expect(streams.expire(QUESTION_MS)).toEqual(['"q"'])
    expect(streams.heldCount).toBe(1)
  })
})

describe('resumption (contract 10.10)', () => {
  test('goes on with exactly what was missed of that stream', () => {
    const streams = new SessionStreams('t')
    const [one, other] = [streams.openPost(), streams.openPost()]
    const { id } = streams.append(one, line('a'))
    streams.append(other, line('x'))
    streams.append(one, line('b'))
    streams.lost(one)
    streams.append(one, line('c'))
    expect(missedOf(streams, streams.startOf(one))).toEqual(['a', 'b', 'c'])
    expect(missedOf(streams, id)).toEqual(['b', 'c'])
    expect(streams.choose(false)).toBeDefined()
  })

  test('an ended stream can be had for 60 s; with nothing missed it is over', () => {
    const streams = new SessionStreams('t')
    const post = streams.openPost()
    const { id: first } = streams.append(post, line('a'))
    const { id: last } = streams.append(post, line('b'))
    streams.end(post, 1_000)
    expect(streams.resume(first)).toMatchObject({ outcome: 'resumed', isEnded: true })
    expect(streams.resume(last)).toEqual({ outcome: 'over' })
    streams.expire(1_000 + ENDED_MS - 1)
    expect(streams.resume(last)).toEqual({ outcome: 'over' })
    streams.expire(1_000 + ENDED_MS)
    expect(streams.resume(first)).toEqual({ outcome: 'unknown' })
    expect(streams.keptBytes).toBe(0)
  })

  test.each([
    '',
    't',
    't-1',
    't-1-2',
    't-1--1',
    't-9-1',
    'u-1-1',
    't-1-1 ',
    't-01e1-1',
    `t-1-${'1'.repeat(400)}`,
    '\u0000',
  ])('%j is nothing that this session has said', (id) => {
    const streams = new SessionStreams('t')
    streams.append(streams.openPost(), line('a'))
    expect(streams.resume(id)).toEqual({ outcome: 'unknown' })
  })

  test.each([
    ['events', MAX_KEPT_EVENTS, 1],
    ['bytes', 4, MAX_KEPT_BYTES / 4],
  ])('the last so many %s are kept; who needs more is told that it is gone', (_, count, bytes) => {
    const streams = new SessionStreams('t')
    const post = streams.openPost()
    for (let i = 0; i < count; i++) streams.append(post, Buffer.alloc(bytes))
    expect(missedOf(streams, streams.startOf(post))).toHaveLength(count)
    streams.append(post, Buffer.alloc(bytes))
    expect(streams.resume(streams.startOf(post))).toEqual({ outcome: 'unknown' })
    expect(missedOf(streams, `t-${post}-1`)).toHaveLength(count)
    expect(streams.keptBytes).toBe(count * bytes)
  })

  test('streams that ended without a word are not remembered without a bound', () => {
    const streams = new SessionStreams('t')
    for (let i = 0; i < 5_000; i++) streams.openGet(0)
    expect(streams.size).toBeLessThanOrEqual(1_001)
  })
})
