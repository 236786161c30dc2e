import { expect, test, vi } from 'vitest'
import { Edges, KernelMistake } from './edges.ts'

function edges() {
  const lines: [level: string, text: string, about: unknown][] = []
  return { lines, edges: new Edges({ write: (level, text, about) => void lines.push([level, text, about]) }) }
}

test('an exception is told with its cause, counted, and replaced', () => {
  const { lines, edges: guarded } = edges()
  const fail = (): number => {
    throw new TypeError('no such thing')
  }
  expect(guarded.guard('a door', fail, 7)).toBe(7)
  expect(guarded.failures).toBe(1)
  expect(lines).toEqual([
    ['error', expect.stringContaining('a door'), { cause: expect.stringMatching(/^TypeError: no such thing at /) }],
  ])
})

test('what a parser quotes of a peer does not reach the log', () => {
  const { lines, edges: guarded } = edges()
  guarded.guard('a door', () => JSON.parse('{"password" "hunter2"}'), undefined)
  expect(JSON.stringify(lines)).not.toMatch(/hunter2|password/)
})

test('a mistake of the kernel is not swallowed', () => {
  const { edges: guarded } = edges()
  const later = vi.spyOn(globalThis, 'setImmediate').mockImplementation((() => {}) as never)
  const mistake = new KernelMistake(new Error('a table is broken'))
  guarded.report('a door', mistake)
  const [[crash]] = later.mock.calls as unknown as [[() => void]]
  later.mockRestore()
  expect(crash).toThrow(mistake)
  expect(guarded.failures).toBe(0)
})
