import { expect, it, vi } from 'vitest'
import { Envelope, SHAPE } from './envelope.ts'
import { FIELD } from './fields.ts'
import { LineSplitter } from './frame.ts'
import { scanner } from './scanner.ts'

vi.mock('./scanner-wasm.ts', () => ({ SCANNER_WASM: 'bm90IHdhc20=' }))

it('where the scanner cannot run, lines are read all the same', () => {
  expect(scanner).toBeUndefined()
  const envelope = new Envelope()
  const seen: unknown[] = []
  const stream = Buffer.from(
    '{"id":1,"method":"m","sessionId":"s"}\n{"id":"é","result":{}}\n{"id":1,"id":2}\n{"id":1]\n',
  )
  new LineSplitter(100).push(stream, 0, (bytes, start, end) => {
    seen.push([envelope.read(bytes, start, end), envelope.has(FIELD.id) && envelope.key(FIELD.id)])
    return true
  })
  expect(seen.slice(0, 2)).toEqual([
    [SHAPE.request, 1],
    [SHAPE.response, 'é'],
  ])
  expect(seen.slice(2).map((row) => (row as unknown[])[0])).toEqual([SHAPE.bad, SHAPE.notJson])
})
