import { describe, expect, it } from 'vitest'
import type { Progress } from './install/job.ts'
import { drawBar, ProgressLine } from './progress-line.ts'

const at = (phase: Progress['phase'], more: Partial<Progress> = {}): Progress => ({
  id: 'tool',
  version: '1.0.0',
  phase,
  ...more,
})

function streamOf(isTTY: boolean) {
  const written: string[] = []
  return { isTTY, columns: 80, written, write: (text: string) => written.push(text) }
}

describe('progress', () => {
  it('is a sentence per step where there is no terminal', () => {
    const stream = streamOf(false)
    const line = new ProgressLine(stream)
    for (let done = 1; done < 100; done += 1) line.update(at('downloading', { doneBytes: done, totalBytes: 100 }))
    line.update(at('installed'))
    line.finish()
    expect(stream.written).toEqual(['downloading tool 1.0.0\n', 'installed tool 1.0.0\n'])
  })

  it('is one line on a terminal that is cleared at the end', () => {
    const stream = streamOf(true)
    const line = new ProgressLine(stream)
    line.update(at('downloading', { doneBytes: 524_288, totalBytes: 1_048_576 }))
    expect(stream.written.join('')).toContain('50 %')
    line.update(at('installed'))
    expect(stream.written.at(-1)).toBe('\r\x1b[K')
    expect(stream.written.join('')).not.toContain('\n')
  })

  it('has a bar when the size is known and a count when it is not', () => {
    expect(drawBar(at('downloading', { doneBytes: 3 * 1024 ** 2, totalBytes: 4 * 1024 ** 2 }))).toContain(
      '75 %  3.0 of 4.0 MiB',
    )
    expect(drawBar(at('downloading', { doneBytes: 3 * 1024 ** 2, totalBytes: undefined }))).toBe('  3.0 MiB')
    expect(drawBar(at('installing'))).toBe('')
  })
})
