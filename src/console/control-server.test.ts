import { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { ControlError, type ControlMethods, serveControl } from './control-server.ts'

/** A connection whose other end is the test. */
class Wire extends Duplex {
  readonly said: string[] = []
  isRead = true

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.said.push(chunk.toString())
    if (this.isRead) done()
  }
}

async function ask(methods: ControlMethods, line: string): Promise<{ answer: unknown; troubles: unknown[] }> {
  const troubles: unknown[] = []
  const wire = new Wire()
  serveControl(wire, methods, (error) => troubles.push(error))
  wire.push(`${line}\n`)
  while (wire.said.length === 0) await new Promise((resolve) => setImmediate(resolve))
  return { answer: JSON.parse(wire.said.join('')), troubles }
}

const broken = new TypeError('it is broken')
const METHODS: ControlMethods = {
  fine: () => ({ ok: true }),
  refuses: () => {
    throw new ControlError('not now', { why: 1 })
  },
  throws: () => {
    throw broken
  },
  rejects: () => Promise.reject(broken),
  says: () => {
    const ring: Record<string, unknown> = {}
    ring['ring'] = ring
    return ring
  },
}

test.each(['throws', 'rejects'])('an exception of a method that %s is answered and told', async (method) => {
  verifies('8.6-edges')
  const { answer, troubles } = await ask(METHODS, `{"id":1,"method":"${method}"}`)
  expect(answer).toMatchObject({ id: 1, error: { code: -32603, data: { reason: 'internal_error' } } })
  expect(JSON.stringify(answer)).not.toContain('it is broken')
  expect(troubles).toEqual([broken])
})

test('a result that cannot be written is answered and told', async () => {
  const { answer, troubles } = await ask(METHODS, '{"id":1,"method":"says"}')
  expect(answer).toMatchObject({ error: { code: -32603 } })
  expect(troubles).toHaveLength(1)
})

test('a refusal and a mistake of the asker are no trouble', async () => {
  for (const line of ['{"id":"x","method":"refuses"}', 'null', '{', '[]', '{"id":{},"method":7}']) {
    const { answer, troubles } = await ask(METHODS, line)
    expect(answer, line).toHaveProperty('error')
    expect(troubles).toEqual([])
  }
})

test('an answer has the id of its question', async () => {
  expect((await ask(METHODS, '{"id":"a","method":"fine"}')).answer).toEqual({
    jsonrpc: '2.0',
    id: 'a',
    result: { ok: true },
  })
})

test('a line that is too long is answered, and the connection ends', async () => {
  verifies('8.6-edges')
  const wire = new Wire()
  serveControl(wire, METHODS)
  for (let sent = 0; sent <= 256; sent++) wire.push('['.repeat(1024))
  wire.push('\n{"id":1,"method":"fine"}\n')
  await new Promise((resolve) => wire.once('finish', resolve))
  expect(wire.said.map((line) => JSON.parse(line))).toMatchObject([
    { id: null, error: { code: -32600, data: { reason: 'message_too_large' } } },
  ])
})

test('of many questions at once each has its answer, in order, and others have their turn in between', async () => {
  verifies('8.6-edges')
  const wire = new Wire()
  let asked = 0
  serveControl(wire, { count: () => ++asked })
  wire.push('{"id":1,"method":"count"}\n'.repeat(500))
  wire.push(null)
  let turns = 0
  while (!wire.writableFinished) {
    await new Promise((resolve) => setImmediate(resolve))
    turns++
  }
  expect(wire.said.map((line) => JSON.parse(line).result)).toEqual(Array.from({ length: 500 }, (_, n) => n + 1))
  expect(turns).toBeGreaterThan(400)
})

test('an asker that does not read is not read: nothing is answered into its memory', async () => {
  verifies('8.6-edges')
  const wire = new Wire()
  wire.isRead = false
  let asked = 0
  const answer = 'x'.repeat(10_000)
  const says = () => {
    asked++
    return answer
  }
  serveControl(wire, { says })
  for (let n = 0; n < 100; n++) wire.push('{"id":1,"method":"says"}\n'.repeat(10))
  for (let turn = 0; turn < 2_000; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(asked).toBeLessThan(10)
  wire.destroy()
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(asked).toBeLessThan(10)
})
