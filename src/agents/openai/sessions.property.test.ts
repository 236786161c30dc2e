import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { Message } from './history.ts'
import { Session, Sessions } from './sessions.ts'

const start = { cwd: '/', model: 'm' }
const runs = { numRuns: 100 }

describe('sessions', () => {
  it('have ids that differ', () => {
    verifies('O2-ids')
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 200 }), (count) => {
        const ids = Array.from({ length: count }, () => new Session(start).id)
        expect(new Set(ids).size).toBe(count)
      }),
      runs,
    )
  })

  it('keep messages in the order they came', () => {
    const message: fc.Arbitrary<Message> = fc.record({ role: fc.constant('user' as const), content: fc.string() })
    fc.assert(
      fc.property(fc.array(fc.array(message)), (batches) => {
        const session = new Session(start)
        for (const batch of batches) session.remember(batch)
        expect(session.history).toEqual(batches.flat())
      }),
      runs,
    )
  })

  it('never exceed their bound and let the longest idle go', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 40 }), (limit, count) => {
        const sessions = new Sessions(limit)
        const added = Array.from({ length: count }, () => new Session(start))
        const gone = added.flatMap((session) => sessions.add(session) ?? [])
        expect(sessions.size).toBe(Math.min(limit, count))
        expect(gone).toEqual(added.slice(0, Math.max(0, count - limit)))
      }),
      runs,
    )
  })

  it('keep the one that was used last', () => {
    const sessions = new Sessions(2)
    const [first, second, third] = [new Session(start), new Session(start), new Session(start)]
    sessions.add(first)
    sessions.add(second)
    sessions.get(first.id)
    expect(sessions.add(third)).toBe(second)
  })

  it('keep the one that runs a turn', async () => {
    const sessions = new Sessions(1)
    const busy = new Session(start)
    sessions.add(busy)
    let release = () => {}
    const turn = busy.run(new AbortController().signal, () => new Promise<void>((resolve) => (release = resolve)))
    expect(sessions.add(new Session(start))).toBeUndefined()
    expect(sessions.get(busy.id)).toBe(busy)
    release()
    await turn
  })
})

describe('turn', () => {
  const request = () => new AbortController()

  it('is cancelled by the session, by its request, and by a request that was cancelled before', async () => {
    const session = new Session(start)
    const seen = await session.run(request().signal, async (cancel) => {
      session.cancel()
      return cancel.signal.aborted
    })
    const asked = request()
    const forwarded = await session.run(asked.signal, async (cancel) => {
      asked.abort()
      return cancel.signal.aborted
    })
    const late = await session.run(asked.signal, async (cancel) => cancel.signal.aborted)
    expect([seen, forwarded, late]).toEqual([true, true, true])
  })

  it('is not touched by a cancel that came when nothing ran', async () => {
    const session = new Session(start)
    session.cancel()
    expect(await session.run(request().signal, async (cancel) => cancel.signal.aborted)).toBe(false)
  })

  it('leaves the session free when it fails', async () => {
    const session = new Session(start)
    await expect(session.run(request().signal, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(session.turn).toBeUndefined()
  })
})
