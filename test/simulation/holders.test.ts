import { expect, it } from 'vitest'
import type { Core } from '../../src/kernel/core.ts'
import { Holders } from './holders.ts'

/** What clients hold at the end of an event, by their ids. */
function holding(bytes: Readonly<Record<number, number>>): Core {
  const clients = new Map(Object.entries(bytes).map(([id, retainedBytes]) => [id, { id, retainedBytes }]))
  return { clients, workers: new Map() } as unknown as Core
}

function close(holders: Holders, client: number, broughtBytes = 0): void {
  const text = 'client closed: the bus retains more than max_total_buffer'
  holders.hear([{ do: 'log', level: 'warn', text, about: { client } }], broughtBytes)
}

it('8.3 who held more before and after the closing was to be closed first', () => {
  const holders = new Holders()
  holders.look(holding({ 1: 1_200, 2: 5_700 }))
  close(holders, 1)
  expect(() => holders.look(holding({ 2: 5_700 }))).toThrow('client 1 was closed for its 1200 bytes')
})

it('8.3 who held more and has read it in the very event is not the one to be closed', () => {
  const holders = new Holders()
  holders.look(holding({ 1: 1_200, 2: 5_700 }))
  close(holders, 1)
  holders.look(holding({ 2: 0 }))
})

it('8.3 who is closed may have held what the very event has brought', () => {
  const holders = new Holders()
  holders.look(holding({ 1: 0, 2: 5_700 }))
  close(holders, 1, 5_000)
  holders.look(holding({ 2: 5_700 }))
})
