import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RemoteFault } from '../faults.ts'
import { type Bookmark, readEvents } from './event-stream.ts'

const MAX_BYTES = 10_000

async function* cut(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length]!
    yield bytes.subarray(at, at + size)
    at += size
  }
}

async function read(bytes: Buffer, sizes: readonly number[] = [7]): Promise<{ heard: string[]; bookmark: Bookmark }> {
  const bookmark: Bookmark = { lastEventId: undefined, retryMs: undefined }
  const heard: string[] = []
  for await (const data of readEvents(cut(bytes, sizes), MAX_BYTES, bookmark)) heard.push(data.toString())
  return { heard, bookmark }
}

const value = fc.jsonValue({ stringUnit: 'binary' })
const ending = fc.constantFrom('\n', '\r\n', '\r')

test('however the stream is cut, the same messages come out of it, and it is known where it was', async () => {
  const events = fc.array(fc.tuple(value, fc.option(fc.stringMatching(/^[a-z0-9-]{1,8}$/), { nil: undefined })))
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 })
  await fc.assert(
    fc.asyncProperty(events, ending, sizes, async (sent, end, chunks) => {
      const text = sent
        .map(([each, id]) => `${id === undefined ? '' : `id: ${id}${end}`}data: ${JSON.stringify(each)}${end}${end}`)
        .join(`: a comment${end}${end}event: ping${end}data: x${end}${end}`)
      const { heard, bookmark } = await read(Buffer.from(text), chunks)
      expect(heard).toEqual(sent.map(([each]) => JSON.stringify(each)))
      expect(bookmark.lastEventId).toBe(sent.findLast(([, id]) => id !== undefined)?.[1])
    }),
  )
})

test('an event that is torn does not come out, and its id does not count', async () => {
  const { heard, bookmark } = await read(Buffer.from('id: 1\ndata: {}\n\nid: 2\ndata: {"a":1}\n'))
  expect([heard, bookmark.lastEventId]).toEqual([['{}'], '1'])
})

test('a beginning without data is only a place to come back to', async () => {
  const { heard, bookmark } = await read(Buffer.from('retry: 700\nid: 1\ndata: \n\n'))
  expect([heard, bookmark]).toEqual([[], { lastEventId: '1', retryMs: 700 }])
})

test.each([
  ['0', 50],
  ['99999999', 30_000],
])('retry: %s is %i ms', async (text, retryMs) => {
  expect((await read(Buffer.from(`retry: ${text}\n\n`))).bookmark.retryMs).toBe(retryMs)
})

test.each([
  ['too long in one piece', Buffer.from(`data: ${'x'.repeat(MAX_BYTES + 1)}\n\n`), [1_000_000], 'upstream_too_large'],
  ['too long, without an end', Buffer.from(`data: ${'x'.repeat(5 * MAX_BYTES)}`), [1_000], 'upstream_too_large'],
  ['too many lines of data', Buffer.from('data: xxxxxxxx\n'.repeat(MAX_BYTES)), [1_000], 'upstream_too_large'],
  ['no UTF-8', Buffer.from([0x64, 0x61, 0xff]), [1], 'upstream_bad_response'],
])('%s', async (_what, bytes, sizes, reason) => {
  const failure = await read(bytes, sizes).catch((cause: unknown) => cause)
  expect(failure).toBeInstanceOf(RemoteFault)
  expect((failure as RemoteFault).reason).toBe(reason)
})

test('bytes of no meaning end the reading or come to nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), fc.integer({ min: 1, max: 50 }), async (bytes, size) => {
      const outcome = await read(Buffer.from(bytes), [size]).catch((cause: unknown) => cause)
      if (outcome instanceof Error) expect(outcome).toBeInstanceOf(RemoteFault)
    }),
  )
})
