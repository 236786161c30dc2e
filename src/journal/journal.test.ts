/** The journal on a real database: what is written is read again, whole and in order (contract 12.9 to 12.11). */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type TemporaryFolder, temporaryFolder } from '../../test/fixtures/trace/calls.ts'
import { openDatabase } from '../host/sqlite.ts'
import type { BusEvent, JournalOrder } from '../kernel/events.ts'
import { Engine } from '../trace/engine.ts'
import { inlineHost } from '../trace/engine-host.ts'
import { openTraceStore, type TraceStore } from '../trace/store.ts'
import { SessionJournal } from './journal.ts'
import { JournalTables } from './tables.ts'

const DAY_MS = 86_400_000
const NOW_MS = 1_000 * DAY_MS

let folder: TemporaryFolder
let told: BusEvent[]
let stores: TraceStore[]

beforeEach(() => {
  folder = temporaryFolder()
  told = []
  stores = []
})
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()))
  folder.remove()
})

const path = (): string => join(folder.path, 'store.db')

async function open(retentionDays = 0): Promise<SessionJournal> {
  const makeHost = () => inlineHost(new Engine({ journal: new JournalTables() }))
  const store = await openTraceStore({ path: path(), makeHost, times: { retryMs: 10 } })
  stores.push(store)
  const port = store.tenant('journal')!
  const journal = new SessionJournal({ port, tell: (event) => told.push(event), nowMs: () => NOW_MS, retentionDays })
  await journal.open()
  return journal
}

const KEY = '["local","s"]'
const OPEN: JournalOrder = { order: 'open', key: KEY, session: 's', pool: 'p', principal: 'local', cwd: '/w', atMs: 5 }

function append(seq: number, text = `{"n":${seq}}`): JournalOrder {
  return {
    order: 'append',
    key: KEY,
    life: 1,
    seq,
    kind: seq % 2 === 0 ? 'update' : 'event',
    atMs: 10 + seq,
    bytes: Buffer.from(`${text}\n`),
  }
}

/** Reads as the kernel does; gives the numbers with their lines. */
async function read(journal: SessionJournal, from = 1, to = 1_000, maxBytes = 1_000_000): Promise<[number, string][]> {
  const before = told.length
  journal.take({ order: 'read', key: KEY, reader: 7, from, to, maxBytes, wantsHead: true })
  while (told.length === before) await new Promise((resolve) => setTimeout(resolve, 1))
  const { entries, bytes } = told[before] as Extract<BusEvent, { type: 'journal-lines' }>
  let at = 0
  return entries.map(({ seq, length }) => [seq, bytes.subarray(at, (at += length)).toString()])
}

test('what was written is read again by another run, byte for byte, with all that is known of the session', async () => {
  verifies('12.8-bytes', '12.9-store')
  const journal = await open()
  const odd = `{"text":"\\u2028 \ud83d\ude00 ${'x'.repeat(70_000)}"}`
  const orders: JournalOrder[] = [
    OPEN,
    append(1),
    append(2, odd),
    { order: 'note', key: KEY, title: 'T', answer: '{"a":1}', isLost: false },
    { order: 'note', key: KEY, state: { kind: 'plan', seq: 2, bytes: Buffer.from('{"plan":1}\n') } },
    append(3),
  ]
  for (const order of orders) journal.take(order)
  await journal.close()
  expect(told.at(-1)).toEqual({ type: 'journal-written', upTo: [[KEY, 1, 3]] })
  await stores[0]!.close()
  expect(statSync(path()).mode & 0o777).toBe(0o600)

  told.length = 0
  const next = await open()
  expect(told[0]).toMatchObject({
    type: 'journal-opened',
    sessions: [
      {
        session: 's',
        pool: 'p',
        principal: 'local',
        cwd: '/w',
        title: 'T',
        seq: 3,
        firstSeq: 1,
        createdAtMs: 5,
        updatedAtMs: 13,
        isLost: false,
      },
    ],
  })
  expect(told[1]).toEqual({ type: 'journal-changed', isWriting: true })
  expect(await read(next)).toEqual([
    [1, '{"n":1}\n'],
    [2, `${odd}\n`],
    [3, '{"n":3}\n'],
  ])
  const { head, bytes } = told.at(-1) as Extract<BusEvent, { type: 'journal-lines' }>
  expect(head).toEqual({ answer: '{"a":1}', states: [{ kind: 'plan', seq: 2, length: 11 }] })
  expect(bytes.subarray(-11).toString()).toBe('{"plan":1}\n')
})

test('it is read in portions, trimmed, begun anew and deleted', async () => {
  const journal = await open()
  for (const order of [OPEN, ...Array.from({ length: 10 }, (_, n) => append(n + 1))]) journal.take(order)
  await journal.close()
  expect((await read(journal, 3, 8, 20)).map(([seq]) => seq)).toEqual([3, 4])
  journal.take({ order: 'trim', key: KEY, before: 6 })
  await journal.close()
  expect((await read(journal)).map(([seq]) => seq)).toEqual([6, 7, 8, 9, 10])
  journal.take(OPEN)
  journal.take(append(1))
  await journal.close()
  expect((await read(journal)).map(([seq]) => seq)).toEqual([1])
  journal.take({ order: 'delete', key: KEY })
  await journal.close()
  expect(await read(journal)).toEqual([])
})

test('what is deleted is not in the file any more', async () => {
  verifies('12.9-store')
  const journal = await open()
  const said = `{"text":"a secret of theirs ${'x'.repeat(20_000)}"}`
  const state = { kind: 'plan', seq: 1, bytes: Buffer.from('{"plan":"a secret of theirs"}\n') }
  for (const order of [OPEN, append(1, said), append(2), { order: 'note', key: KEY, state } as JournalOrder])
    journal.take(order)
  await journal.close()
  journal.take({ order: 'delete', key: KEY })
  await journal.close()
  await stores[0]!.close()
  expect(readFileSync(path()).includes('a secret')).toBe(false)
})

test('what is told again counts once', async () => {
  const journal = await open()
  for (const order of [
    OPEN,
    append(1),
    append(2),
    { ...OPEN, isAgain: true } as JournalOrder,
    append(1),
    append(2),
    append(3),
  ])
    journal.take(order)
  await journal.close()
  await stores[0]!.close()
  told.length = 0
  await open()
  const [opened] = told as [Extract<BusEvent, { type: 'journal-opened' }>]
  expect(opened.sessions[0]).toMatchObject({ seq: 3, bytes: 24 })
})

test('what is too old is forgotten; whose it was is not', async () => {
  const journal = await open()
  for (const order of [OPEN, append(1)]) journal.take(order)
  await journal.close()
  await stores[0]!.close()
  told.length = 0
  await open(14)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(told.at(-1)).toEqual({ type: 'journal-swept', keys: [KEY] })
  expect(told[0]).toMatchObject({ sessions: [{ session: 's' }] })
})

describe('a file that does not work', () => {
  test('one that a newer program has written is left alone', async () => {
    await open()
    await stores[0]!.close()
    const db = await openDatabase(path())
    db.exec("UPDATE meta SET value = '99' WHERE key = 'journal_version'")
    db.close()
    told.length = 0
    const journal = await open()
    expect(journal.status().state).toBe('failed')
    expect(told).toEqual([])
    journal.take(append(1))
    expect(await read(journal)).toEqual([])
  })

  test('one whose tables were taken away fails the batch, is told of, and works again', async () => {
    const journal = await open()
    for (const order of [OPEN, append(1)]) journal.take(order)
    await journal.close()
    const db = await openDatabase(path())
    db.exec('DROP TABLE journal_runs')
    db.close()
    journal.take(append(2))
    await journal.close()
    expect(told.at(-1)).toEqual({ type: 'journal-changed', isWriting: false })
    expect(journal.status()).toEqual({ state: 'failed', dropped: 1 })
    while (journal.status().state === 'failed') await new Promise((resolve) => setTimeout(resolve, 5))
    expect(told.at(-1)).toEqual({ type: 'journal-changed', isWriting: true })
    journal.take(append(3))
    await journal.close()
    expect((await read(journal)).map(([seq]) => seq)).toEqual([3])
  })
})
