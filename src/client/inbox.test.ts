import { expect, test } from 'vitest'
import { BusGone } from './errors.ts'
import { Inbox } from './inbox.ts'

function inboxWithLog(): { inbox: Inbox; log: string[] } {
  const log: string[] = []
  return { log, inbox: new Inbox({ pause: () => log.push('pause'), resume: () => log.push('resume') }) }
}

test('gives out lines in their order, whoever waits first', async () => {
  const { inbox } = inboxWithLog()
  const early = inbox.take()
  inbox.put(Buffer.from('a\n\nb\n'))
  inbox.put(Buffer.from('c\n'))
  expect([await early, await inbox.take(), await inbox.take()].map(String)).toEqual(['a', 'b', 'c'])
})

test('stops the source above a mebibyte and goes on below half of it', async () => {
  const { inbox, log } = inboxWithLog()
  const line = Buffer.from(`${'x'.repeat(256 * 1024)}\n`)
  for (let i = 0; i < 4; i++) inbox.put(line)
  expect(log).toEqual([])
  inbox.put(line)
  inbox.put(line)
  expect(log).toEqual(['pause'])
  for (let i = 0; i < 4; i++) await inbox.take()
  expect(log).toEqual(['pause'])
  await inbox.take()
  expect(log).toEqual(['pause', 'resume'])
})

test('very many lines, taken one by one, are all there', async () => {
  const { inbox } = inboxWithLog()
  inbox.put(Buffer.from(Array.from({ length: 1_000 }, (_, i) => `${i}\n`).join('')))
  for (let i = 0; i < 1_000; i++) expect(String(await inbox.take())).toBe(String(i))
})

test('what came before the end is given out before it', async () => {
  const { inbox } = inboxWithLog()
  inbox.put(Buffer.from('last\n'))
  inbox.end(undefined)
  expect(String(await inbox.take())).toBe('last')
  expect(await inbox.take()).toBeUndefined()
})

test('an end with a reason fails whoever waits, now and later', async () => {
  const { inbox } = inboxWithLog()
  const waiting = inbox.take()
  inbox.end(new BusGone('gone'))
  await expect(waiting).rejects.toBeInstanceOf(BusGone)
  await expect(inbox.take()).rejects.toBeInstanceOf(BusGone)
})
