import { expect, it } from 'vitest'
import { Sightings } from './sightings.ts'

it('remembers how and when somebody was last there, and counts refusals', () => {
  let nowMs = 1
  const sightings = new Sightings(() => nowMs)
  sightings.take({ event: 'open', principal: 'ann', via: 'token' })
  nowMs = 2
  sightings.take({ event: 'denied', principal: 'ann', via: 'token' })
  sightings.take({ event: 'refused', principal: 'ann' })
  nowMs = 3
  sightings.take({ event: 'call', principal: 'ann', via: 'token' })
  sightings.take({ event: 'refused' })
  expect(sightings.of('ann')).toEqual({ via: 'token', lastSeenMs: 2, refused: 2 })
  expect(sightings.of('bob')).toBeUndefined()
})

it('forgets whom it has not seen for longest', () => {
  const sightings = new Sightings(() => 0)
  for (let count = 0; count < 1_000; count++) sightings.take({ event: 'open', principal: `p${count}` })
  sightings.take({ event: 'close', principal: 'p0' })
  sightings.take({ event: 'open', principal: 'new' })
  expect([sightings.of('p0'), sightings.of('new'), sightings.of('p1')]).toEqual([
    expect.anything(),
    expect.anything(),
    undefined,
  ])
})
