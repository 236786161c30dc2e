import { expect, test } from 'vitest'
import { InTurn } from './in-turn.ts'

/** An act whose runs end when the test says so. */
function slow() {
  const runs: { end(value: string): void; fail(error: Error): void }[] = []
  const act = (): Promise<string> => new Promise((end, fail) => runs.push({ end, fail }))
  return { runs, turn: new InTurn(act) }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a second question is answered by a run that began after it, never beside the first', async () => {
  const { runs, turn } = slow()
  const first = turn.ask()
  const second = turn.ask()
  expect(runs).toHaveLength(1)
  runs[0]!.end('old')
  expect(await first).toBe('old')
  await settled()
  expect(runs).toHaveLength(2)
  runs[1]!.end('new')
  expect(await second).toBe('new')
})

test('all who ask meanwhile share one run, and each is answered', async () => {
  const { runs, turn } = slow()
  const first = turn.ask()
  const others = [turn.ask(), turn.ask(), turn.ask()]
  runs[0]!.end('1')
  await first
  await settled()
  const late = turn.ask()
  runs[1]!.end('2')
  expect(await Promise.all(others)).toEqual(['2', '2', '2'])
  await settled()
  runs[2]!.end('3')
  expect(await late).toBe('3')
  expect(runs).toHaveLength(3)
})

test('a run that fails is told to those who asked for it, and the next goes on', async () => {
  const { runs, turn } = slow()
  const first = turn.ask()
  const second = turn.ask()
  runs[0]!.fail(new Error('bad file'))
  await expect(first).rejects.toThrow('bad file')
  await settled()
  runs[1]!.end('good')
  expect(await second).toBe('good')
})
