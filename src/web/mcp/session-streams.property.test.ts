/**
 * A session whose streams break, come back and end in any order: a reader sees every message that was given to its stream, once and
 * in order, or is told that it cannot have them.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Placed, SessionStreams, type StreamId } from './session-streams.ts'

/** What one reader of a stream has seen. */
interface Reader {
  readonly stream: StreamId
  readonly isGet: boolean
  readonly seen: string[]
  lastId: string
  isConnected: boolean
  isOver: boolean
  isCut: boolean
}

const step = fc.oneof(
  fc.record({ do: fc.constantFrom('post', 'get', 'drop', 'resume', 'end', 'wait', 'release'), at: fc.nat(9) }),
  fc.record({
    do: fc.constantFrom('say', 'ask', 'change', 'progress'),
    at: fc.nat(9),
    bytes: fc.constantFrom(8, 900_000),
  }),
)

class World {
  readonly streams = new SessionStreams('t')
  readonly readers: Reader[] = []
  readonly said = new Map<StreamId, string[]>()
  nowMs = 0
  #count = 0

  open(isGet: boolean): void {
    const { stream, ended } = isGet
      ? this.streams.openGet(this.nowMs)
      : { stream: this.streams.openPost(), ended: undefined }
    for (const reader of this.readers)
      if (reader.stream === ended) Object.assign(reader, { isConnected: false, isOver: true })
    const lastId = this.streams.startOf(stream)
    this.readers.push({ stream, isGet, seen: [], lastId, isConnected: true, isOver: false, isCut: false })
    this.said.set(stream, [])
    if (isGet) this.release()
  }

  say(stream: StreamId | undefined, bytes: number, question: boolean, isForGet: boolean): void {
    const text = `${++this.#count} `.padEnd(bytes, '.')
    if (stream === undefined)
      this.streams.hold(Buffer.from(text), {
        isForGet,
        question: question ? text.slice(0, 8) : undefined,
        nowMs: this.nowMs,
      })
    else this.place({ stream, ...this.streams.append(stream, Buffer.from(text)) })
  }

  place({ stream, id, line }: Placed): void {
    this.said.get(stream)!.push(line.toString())
    for (const reader of this.readers) if (reader.stream === stream && reader.isConnected) this.#see(reader, id, line)
  }

  #see(reader: Reader, id: string, line: Buffer): void {
    reader.seen.push(line.toString())
    reader.lastId = id
  }

  release(): void {
    for (const placed of this.streams.release()) this.place(placed)
  }

  resume(reader: Reader): void {
    const resumption = this.streams.resume(reader.lastId)
    if (resumption.outcome === 'unknown') reader.isCut = true
    if (resumption.outcome !== 'resumed') return
    expect(resumption.stream).toBe(reader.stream)
    for (const { id, line } of resumption.missed) this.#see(reader, id, line)
    reader.isConnected = !resumption.isEnded
    if (reader.isConnected) this.release()
  }
}

function play(world: World, { do: what, at, bytes = 8 }: { do: string; at: number; bytes?: number }): void {
  const { streams, readers } = world
  const reader = readers[at % Math.max(readers.length, 1)]
  if (what === 'post' || what === 'get') world.open(what === 'get')
  else if (what === 'say' || what === 'ask') world.say(streams.choose(false), bytes, what === 'ask', false)
  else if (what === 'change') world.say(streams.choose(true), bytes, false, true)
  else if (what === 'wait') streams.expire((world.nowMs += 15_000))
  else if (what === 'release') world.release()
  else if (reader === undefined || reader.isCut) return
  else if (what === 'progress' && streams.has(reader.stream) && !reader.isOver)
    world.say(reader.stream, bytes, false, false)
  else if (what === 'drop' && reader.isConnected) {
    reader.isConnected = false
    streams.lost(reader.stream)
  } else if (what === 'resume' && !reader.isConnected) world.resume(reader)
  else if (what === 'end' && !reader.isOver) {
    Object.assign(reader, { isConnected: false, isOver: true })
    streams.end(reader.stream, world.nowMs)
  }
}

test('nothing is missed, nothing comes twice, nothing grows without a bound', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const world = new World()
      for (const each of steps) play(world, each)
      expect(world.streams.heldCount).toBeLessThanOrEqual(256)
      expect(world.streams.keptBytes).toBeLessThanOrEqual(4 * 1024 * 1024)
      for (const reader of world.readers) {
        if (!reader.isConnected && !reader.isCut) world.resume(reader)
        const said = world.said.get(reader.stream)!
        if (reader.isCut) expect(said.slice(0, reader.seen.length)).toEqual(reader.seen)
        else expect(reader.seen).toEqual(said)
      }
    }),
    { numRuns: 300 },
  )
})
