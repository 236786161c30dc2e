import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { MAX_WAITERS, Turnstile, WAIT_MS } from './turnstile.ts'

describe('a turnstile', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('lets in as many as there are places, the others in order', () => {
    verifies('N10-waiters')
    const turnstile = new Turnstile(1)
    const inside: number[] = []
    for (const n of [1, 2, 3]) {
      turnstile.enter(
        () => inside.push(n),
        () => {},
      )
    }
    expect(inside).toEqual([1])
    turnstile.leave()
    turnstile.leave()
    expect(inside).toEqual([1, 2, 3])
  })

  it.each([
    ['the last place in the queue waits', MAX_WAITERS, 0],
    ['one more is refused', MAX_WAITERS + 1, 1],
  ])('%s', (_title, waiters, expected) => {
    const turnstile = new Turnstile(1)
    let refused = 0
    for (let n = 0; n <= waiters; n++) {
      turnstile.enter(
        () => {},
        () => refused++,
      )
    }
    expect(refused).toBe(expected)
  })

  it('refuses who has waited too long', () => {
    verifies('N10-waiters')
    const turnstile = new Turnstile(1)
    turnstile.enter(
      () => {},
      () => {},
    )
    const refused = vi.fn()
    turnstile.enter(() => {}, refused)
    vi.advanceTimersByTime(WAIT_MS - 1)
    expect(refused).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(refused).toHaveBeenCalledOnce()
  })

  it('passes over who has given up', () => {
    const turnstile = new Turnstile(1)
    turnstile.enter(
      () => {},
      () => {},
    )
    const [first, second] = [vi.fn(), vi.fn()]
    turnstile.enter(first, () => {})()
    turnstile.enter(second, () => {})
    turnstile.leave()
    expect(first).not.toHaveBeenCalled()
    expect(second).toHaveBeenCalledOnce()
  })
})
