/** A client whose door carries messages: whole lines, told apart, and no faster than its door takes them. */
import { expect, test } from 'vitest'
import type { BusEvent } from '../../kernel/events.ts'
import type { Reason } from '../../kernel/faults.ts'
import type { ClientId, WorkerId } from '../../kernel/vocabulary.ts'
import { MessageLink } from './message-link.ts'
import { WrittenLines } from './written-lines.ts'

class Door {
  unsentBytes = 0
  readonly heard: [string, Reason | undefined][] = []
  readonly news: string[] = []

  received(line: Buffer, fault: Reason | undefined): void {
    this.heard.push([line.toString(), fault])
  }
  routed(worker: WorkerId): void {
    this.news.push(`routed ${worker}`)
  }
  pause(): void {
    this.news.push('pause')
  }
  resume(): void {
    this.news.push('resume')
  }
  closed(how: 'flush' | 'drop'): void {
    this.news.push(how)
  }
}

function makeLink(): { door: Door; link: MessageLink; told: BusEvent[] } {
  const door = new Door()
  const told: BusEvent[] = []
  return { door, told, link: new MessageLink(7 as ClientId, door, (event) => told.push(event)) }
}

test('a line that lies in several buffers comes out whole, and is a copy', () => {
  const lines = new WrittenLines()
  const lent = Buffer.from('{"a":1}\n{"b')
  lines.take([lent])
  lent.fill(0x20)
  lines.take([Buffer.from('":'), Buffer.from('2}\n')])
  expect(lines.release().map(String)).toEqual(['{"a":1}', '{"b":2}'])
  expect(lines.release()).toEqual([])
})

test('what is written is heard after the kernel has its buffers back', () => {
  const { door, link } = makeLink()
  expect(link.write([Buffer.from('{"id":1,"result":0}\n')])).toBe(0)
  expect(door.heard).toEqual([])
  link.deliver()
  expect(door.heard).toEqual([['{"id":1,"result":0}', undefined]])
})

test('an answer of the bus is told from one of a worker, by its id as it is spelled', () => {
  const { door, link } = makeLink()
  link.faulted('"a"', 'worker_exited')
  link.write([Buffer.from('{"id":"b","error":{}}\n{"method":"x"}\n{"id":"a","error":{}}\n{"id":"a","error":{}}\n')])
  link.deliver()
  expect(door.heard.map(([, fault]) => fault)).toEqual([undefined, undefined, 'worker_exited', undefined])
})

test('while the door has something unsent the kernel is told so, and hears when it has left, once', () => {
  const { door, link, told } = makeLink()
  door.unsentBytes = 9
  expect(link.write([Buffer.from('{}\n')])).toBe(9)
  door.unsentBytes = 0
  link.drained()
  link.drained()
  expect(told).toEqual([{ type: 'client-wrote', client: 7, pendingBytes: 0 }])
})

test('last words are heard before the end', () => {
  const { door, link } = makeLink()
  link.write([Buffer.from('{"id":1,"error":{}}\n')])
  link.close('flush')
  expect(door.heard).toHaveLength(1)
  expect(door.news).toEqual(['flush'])
})

test('who has left or was closed says nothing more', () => {
  const { door, link, told } = makeLink()
  link.leave(true)
  link.leave()
  link.send(Buffer.from('{}'))
  link.close('drop')
  expect(told).toEqual([{ type: 'client-closed', client: 7, isSettled: true }])
  expect(door.news).toEqual([])
})
