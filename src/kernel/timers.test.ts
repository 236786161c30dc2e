import fc from 'fast-check'
import { expect, test } from 'vitest'
import { busOf } from '../../test/support/kernel-rig.ts'
import { type Timer, Timers } from './timers.ts'
import type { ClientId } from './vocabulary.ts'

test('answered requests leave nothing behind one that is slow', () => {
  const timers = new Timers()
  timers.set(1, () => {})
  for (let number = 0; number < 200_000; number++) timers.cancel(timers.set(30_000 + number, () => {}))
  expect(timers.size).toBe(1)
})

test('a deadline that falls while another fires has its turn', () => {
  const timers = new Timers()
  const fired: string[] = []
  timers.set(5, () => {
    fired.push('first')
    timers.set(5, () => fired.push('set meanwhile'))
  })
  const cancelled = timers.set(6, () => fired.push('cancelled meanwhile'))
  timers.set(5, () => timers.cancel(cancelled))
  timers.fire(10)
  expect(fired).toEqual(['first', 'set meanwhile'])
  expect(timers.nextAtMs()).toBeUndefined()
})

test('a timer that has fired is cancelled without harm to another', () => {
  const timers = new Timers()
  const early = timers.set(1, () => {})
  timers.set(2, () => {})
  timers.fire(1)
  timers.cancel(early)
  timers.cancel(early)
  expect(timers.nextAtMs()).toBe(2)
})

test('whatever is set and cancelled, the rest fires by time and then by order', () => {
  const step = fc.oneof(
    fc.record({ set: fc.nat(50) }),
    fc.record({ cancel: fc.nat(200) }),
    fc.record({ fire: fc.nat(50) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const timers = new Timers()
      const all: Timer[] = []
      /** What is set, as a plain list. */
      let open: { number: number; atMs: number }[] = []
      const fired: number[] = []
      const expected: number[] = []
      for (const one of steps) {
        if ('set' in one) {
          const number = all.length
          all.push(timers.set(one.set, () => fired.push(number)))
          open.push({ number, atMs: one.set })
        } else if ('cancel' in one && all[one.cancel] !== undefined) {
          timers.cancel(all[one.cancel]!)
          open = open.filter(({ number }) => number !== one.cancel)
        } else if ('fire' in one) {
          const due = open.filter(({ atMs }) => atMs <= one.fire).sort((a, b) => a.atMs - b.atMs || a.number - b.number)
          expected.push(...due.map(({ number }) => number))
          open = open.filter(({ atMs }) => atMs > one.fire)
          timers.fire(one.fire)
        }
        expect(timers.size).toBe(open.length)
        expect(timers.nextAtMs()).toBe(open.length === 0 ? undefined : Math.min(...open.map(({ atMs }) => atMs)))
      }
      expect(fired).toEqual(expected)
    }),
  )
})

test('4.1.2 a client that has gone leaves no deadline behind', () => {
  const bus = busOf({ pools: [], limits: { halfCloseTimeoutMs: 3 } })
  bus.start(0)
  const [client, before] = [1 as ClientId, bus.nextDeadlineMs()]
  bus.apply({ type: 'client-opened', client, door: 'unix' }, 0)
  bus.apply({ type: 'client-ended', client }, 0)
  expect(bus.snapshot().clients).toBe(0)
  expect(bus.nextDeadlineMs()).toBe(before)
})
