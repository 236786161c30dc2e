import { randomUUID } from 'node:crypto'
import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { Message } from './history.ts'
import { pageSize, SessionStore } from './session-store.ts'

const turn: Message[] = [
  { role: 'user', content: 'What is a bus?\nIn one line.' },
  { role: 'assistant', content: 'A road for lines.' },
]

describe('session store', () => {
  let dir: string
  let store: SessionStore
  let logs: string[]

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'session-store-'))
    logs = []
    store = new SessionStore(join(dir, 'made', 'as needed'), (message) => logs.push(message))
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  const path = (id: string) => join(dir, 'made', 'as needed', `${id}.jsonl`)

  async function stored(cwd = '/work', messages: readonly Message[] = turn): Promise<string> {
    const id = randomUUID()
    await store.create(id, cwd, 'm1')
    if (messages.length > 0) await store.remember(id, messages, true)
    return id
  }

  it('gives back what it was given', async () => {
    const id = await stored()
    await store.chooseModel(id, 'm2')
    expect(await store.read(id)).toEqual({ id, cwd: '/work', model: 'm2', history: turn })
  })

  it('keeps files for their owner only', async () => {
    verifies('O14-mode')
    expect(statSync(path(await stored())).mode & 0o777).toBe(0o600)
  })

  it('skips a line that a crash left broken', async () => {
    verifies('O14-broken')
    const id = await stored()
    appendFileSync(path(id), '{"kind":"message","mess')
    expect((await store.read(id))?.history).toEqual(turn)
    expect(logs).toEqual([`the file of session ${id} has 1 broken lines, as a crash leaves them: skipped`])
  })

  it('goes on after a line that a crash left broken, and loses nothing that came later', async () => {
    verifies('O14-torn')
    const id = await stored()
    appendFileSync(path(id), '{"kind":"message","mess')
    const next: Message = { role: 'user', content: 'And now?' }
    await store.remember(id, [next], false)
    await store.chooseModel(id, 'm2')
    expect(await store.read(id)).toEqual({ id, cwd: '/work', model: 'm2', history: [...turn, next] })
    expect(logs).toHaveLength(1)
  })

  it('tells nothing of a file that is whole', async () => {
    await store.read(await stored())
    expect(logs).toEqual([])
  })

  it('gives back no call whose result a crash has swallowed', async () => {
    const called = (...ids: string[]): Message => ({
      role: 'assistant',
      content: null,
      tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })),
    })
    const result = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: 'seen' })
    const whole = [...turn, called('a', 'b'), result('a'), result('b')]
    const id = await stored('/work', [...whole, result('x'), called('c', 'd'), result('c')])
    await store.remember(id, turn, false)
    expect((await store.read(id))?.history).toEqual([...whole, ...turn])
  })

  it('knows nothing of unknown and deleted sessions', async () => {
    const id = await stored()
    await store.remove(id)
    expect(await store.read(id)).toBeUndefined()
    expect(await store.read(randomUUID())).toBeUndefined()
    await store.remove(id)
    await expect(store.remember(id, turn, false)).rejects.toThrow('ENOENT')
    expect(await store.read(id)).toBeUndefined()
  })

  it.each(['../escape', 'x', '', '..', 'A'.repeat(36)])('touches no file for the id %j', async (id) => {
    verifies('O14-id')
    const outside = join(dir, 'made', 'escape.jsonl')
    writeFileSync(outside, '{"kind":"session","cwd":"/","model":"m"}\n')
    expect(await store.read(id)).toBeUndefined()
    await store.remove(id)
    expect(statSync(outside).size).toBeGreaterThan(0)
  })

  it('lists by folder, with title and time', async () => {
    const here = await stored('/here')
    await stored('/there')
    const { sessions } = await store.list('/here', undefined)
    expect(sessions).toEqual([
      { sessionId: here, cwd: '/here', title: 'What is a bus?', updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
    ])
    expect((await store.list(undefined, undefined)).sessions).toHaveLength(2)
  })

  it('lists page by page, each session once', async () => {
    const ids = []
    for (let count = 0; count < pageSize + 5; count++) ids.push(await stored('/here', []))
    const first = await store.list('/here', undefined)
    const second = await store.list('/here', first.nextCursor)
    expect([first.sessions.length, second.sessions.length, second.nextCursor]).toEqual([pageSize, 5, undefined])
    const listed = [...first.sessions, ...second.sessions].map((row) => row.sessionId)
    expect(listed.toSorted()).toEqual(ids.toSorted())
  })

  it('ignores files that are not its own', async () => {
    await stored()
    writeFileSync(join(dir, 'made', 'as needed', 'notes.txt'), 'x')
    writeFileSync(path(randomUUID()), 'not json\n')
    expect(readdirSync(join(dir, 'made', 'as needed'))).toHaveLength(3)
    expect((await store.list(undefined, undefined)).sessions).toHaveLength(1)
  })

  it('refuses a folder that is a file', () => {
    const file = join(dir, 'file')
    writeFileSync(file, '')
    expect(() => new SessionStore(file, () => {})).toThrow('EEXIST')
  })
})
