import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LineSplitter } from './frame.ts'
import { Outbox, settleLentRuns } from './outbox.ts'

/** A peer that takes what it is given, at once or some of it. */
function drain(outbox: Outbox): string {
  let text = ''
  while (!outbox.isEmpty) {
    for (const buffer of outbox.take()) text += buffer.toString('latin1')
    outbox.wrote(0)
  }
  return text
}

const line = (text: string): Buffer => Buffer.from(`${text}\n`)

describe('outbox', () => {
  test('neighbours of one chunk leave as one slice, uncopied', () => {
    const outbox = new Outbox(1_000)
    const chunk = Buffer.from('one\ntwo\nthree\n')
    const own = Buffer.from(new Uint8Array(chunk).buffer)
    outbox.append(own, 0, 4)
    outbox.append(own, 4, 8)
    outbox.append(own, 8, 14)
    const [slice, ...more] = outbox.take()
    expect(more).toEqual([])
    expect(slice!.buffer).toBe(own.buffer)
    expect(slice!.toString()).toBe('one\ntwo\nthree\n')
  })

  test('a short line does not keep its chunk alive', () => {
    const outbox = new Outbox(1_000)
    const chunk = Buffer.allocUnsafeSlow(65_536).fill('x')
    outbox.append(chunk, 0, 10)
    const [slice] = outbox.take()
    expect(slice!.buffer.byteLength).toBeLessThanOrEqual(16_384)
  })

  test.each([
    ['at the limit', 100, false],
    ['one over', 101, true],
  ])('8.3 a queue is full above its limit: %s', (_name, bytes, isFull) => {
    const outbox = new Outbox(100)
    outbox.append(Buffer.alloc(bytes), 0, bytes)
    expect(outbox.isFull).toBe(isFull)
  })

  test('8.3 it is released below half', () => {
    const outbox = new Outbox(100)
    outbox.append(Buffer.alloc(100), 0, 100)
    expect(outbox.isReleased).toBe(false)
    outbox.take()
    outbox.wrote(50)
    expect(outbox.isReleased).toBe(false)
    outbox.wrote(49)
    expect(outbox.isReleased).toBe(true)
  })

  test('what the system still holds counts, and nothing more is handed over', () => {
    const outbox = new Outbox(100)
    outbox.append(line('a'), 0, 2)
    outbox.take()
    outbox.wrote(2)
    expect(outbox.isStalled).toBe(true)
    expect(outbox.retainedBytes).toBe(2)
    outbox.append(line('b'), 0, 2)
    expect(outbox.retainedBytes).toBe(4)
    outbox.wrote(0)
    expect(drain(outbox)).toBe('b\n')
    expect(outbox.retainedBytes).toBe(0)
  })

  test('whatever is appended comes out in order, however it is drained', () => {
    const length = fc.oneof(
      fc.nat(200),
      fc.integer({ min: 4_000, max: 4_200 }),
      fc.integer({ min: 16_000, max: 70_000 }),
    )
    fc.assert(
      fc.property(
        fc.array(fc.record({ length, isDrained: fc.boolean(), isStalled: fc.boolean() }), { maxLength: 30 }),
        (steps) => {
          const outbox = new Outbox(1_000)
          let expected = ''
          let seen = ''
          steps.forEach(({ length, isDrained, isStalled }, index) => {
            const text = `${String.fromCharCode(97 + (index % 26)).repeat(length)}\n`
            const chunk = Buffer.from(`junk${text}junk`)
            outbox.append(chunk, 4, 4 + text.length)
            chunk.fill('?', 0, 4)
            expected += text
            if (!isDrained || outbox.isStalled) return
            const taken = outbox.take()
            if (isStalled) {
              outbox.wrote(1)
              seen += taken.map((buffer) => buffer.toString('latin1')).join('')
              outbox.wrote(0)
            } else {
              seen += taken.map((buffer) => buffer.toString('latin1')).join('')
              outbox.wrote(0)
            }
          })
          expect(seen + drain(outbox) === expected).toBe(true)
        },
      ),
    )
  })

  test('long lines in several reads arrive whole, also when two queues take the same one and buffers are used again', () => {
    const lines = fc.array(fc.integer({ min: 20_000, max: 150_000 }), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(
        lines,
        fc.integer({ min: 10_000, max: 65_536 }),
        fc.array(fc.nat(3), { minLength: 12, maxLength: 12 }),
        (lengths, readBytes, choices) => {
          const splitter = new LineSplitter(1_000_000, true)
          const [one, two] = [new Outbox(10_000_000), new Outbox(10_000_000)]
          const expected = ['', '']
          const seen = ['', '']
          const all = Buffer.from(
            lengths.map((length, index) => `${String.fromCharCode(97 + index).repeat(length)}\n`).join(''),
          )
          let count = 0
          for (let at = 0; at < all.length; at += readBytes) {
            const chunk = Buffer.from(new Uint8Array(all.subarray(at, at + readBytes)).buffer)
            splitter.push(chunk, 0, (bytes, start, end) => {
              const choice = choices[count++ % choices.length]!
              const text = bytes.toString('latin1', start, end + 1)
              for (const [index, outbox] of [one, two].entries()) {
                if (choice !== index && choice !== 2) continue
                outbox.append(bytes, start, end + 1)
                expected[index] += text
              }
              return true
            })
            if (choices[count % choices.length]! > 1)
              for (const [index, outbox] of [one, two].entries()) seen[index] += drain(outbox)
          }
          for (const [index, outbox] of [one, two].entries()) seen[index] += drain(outbox)
          expect(seen[0] === expected[0] && seen[1] === expected[1]).toBe(true)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('8.3 what was read into one memory for all arrives as it was sent, however slow its readers are', () => {
    const length = fc.oneof(
      fc.nat(200),
      fc.integer({ min: 3_000, max: 20_000 }),
      fc.integer({ min: 30_000, max: 64_000 }),
    )
    const read = fc.record({
      lengths: fc.array(length, { minLength: 1, maxLength: 6 }),
      to: fc.nat(1),
      drains: fc.nat(3),
      isStalled: fc.boolean(),
    })
    const memory = Buffer.allocUnsafeSlow(65_536)
    fc.assert(
      fc.property(fc.array(read, { maxLength: 25 }), (reads) => {
        const splitter = new LineSplitter(1_000_000, true)
        const outboxes = [new Outbox(1_000_000), new Outbox(1_000_000)]
        const expected = ['', '']
        const seen = ['', '']
        let letter = 0
        for (const { lengths, to, drains, isStalled } of reads) {
          const sent = lengths.map((length) => `${String.fromCharCode(97 + (letter++ % 26)).repeat(length)}\n`).join('')
          for (let at = 0; at < sent.length; at += memory.length) {
            const chunk = memory.subarray(0, memory.write(sent.slice(at, at + memory.length), 'latin1'))
            splitter.push(chunk, 0, (bytes, start, end) => {
              outboxes[to]!.append(bytes, start, end + 1)
              return true
            })
            settleLentRuns()
            memory.fill('#')
          }
          expected[to] += sent
          for (const [index, outbox] of outboxes.entries()) {
            if ((drains & (index + 1)) === 0 || outbox.isEmpty) continue
            const taken = outbox.take()
            if (isStalled) outbox.wrote(1)
            seen[index] += Buffer.concat(taken).latin1Slice()
            outbox.wrote(0)
          }
        }
        for (const [index, outbox] of outboxes.entries()) seen[index] += drain(outbox)
        expect(seen[0] === expected[0] && seen[1] === expected[1]).toBe(true)
        expect(outboxes.map(({ retainedBytes }) => retainedBytes)).toEqual([0, 0])
      }),
      { numRuns: 60 },
    )
  })
})
