/** What is typed: history, pastes, commands. */
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HistoryFile } from './history-file.ts'
import { PasteFilter, withLineBreaks } from './paste.ts'
import { completeSlash } from './slash-commands.ts'

describe('the history', () => {
  let folder: string
  let file: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chat-history-'))
    file = join(folder, 'deep', 'chat-history')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('is kept over several lines, the newest first, its owner’s alone', () => {
    const history = new HistoryFile(file)
    for (const entry of ['one', 'two\nlines', 'two\nlines']) history.add(entry)
    expect(new HistoryFile(file).newestFirst()).toEqual(['two\nlines', 'one'])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(join(folder, 'deep')).mode & 0o777).toBe(0o700)
  })

  it('is bounded: in entries, in lines, in length', () => {
    const history = new HistoryFile(file)
    for (let entry = 0; entry < 2_001; entry++) history.add(`question ${entry}`)
    history.add('x'.repeat(10_000))
    expect(new HistoryFile(file).newestFirst()).toHaveLength(1_000)
    expect(readFileSync(file, 'utf8').split('\n').length).toBeLessThanOrEqual(1_001)
    expect(new HistoryFile(file).newestFirst()[0]).toBe('question 2000')
  })

  it('costs nobody a conversation: a link, a broken file, no folder', () => {
    new HistoryFile(file).add('first')
    const target = join(folder, 'target')
    writeFileSync(target, '')
    const link = join(folder, 'link')
    symlinkSync(target, link)
    new HistoryFile(link).add('secret')
    expect(readFileSync(target, 'utf8')).toBe('')
    writeFileSync(file, 'no JSON\n"good"\n17\n{\n')
    expect(new HistoryFile(file).newestFirst()).toEqual(['good'])
    new HistoryFile(join(target, 'below-a-file')).add('nothing')
  })
})

describe('a paste', () => {
  it('is one line, wherever its marks are cut', () => {
    const keys = '200~one\r\ntwo\rthree\x1b[201~b\r\x1b[A'
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (sizes) => {
        const filter = new PasteFilter()
        let out = filter.push('a\x1b[')
        for (let at = 0, turn = 0; at < keys.length; turn++) {
          const size = sizes[turn % sizes.length]!
          out += filter.push(keys.slice(at, at + size))
          at += size
        }
        // A line end that was cut in two may count twice.
        expect(out.replace(/⏎+/g, '⏎')).toBe('aone⏎two⏎threeb\r\x1b[A')
      }),
    )
    expect(withLineBreaks('one⏎two')).toBe('one\ntwo')
  })

  it('leaves a lone escape alone', () => {
    expect(new PasteFilter().push('\x1b')).toBe('\x1b')
  })
})

describe('the Tab key', () => {
  it('completes commands, those of the agent too', () => {
    expect(completeSlash('/m', ['merge'])).toEqual(['/model', '/mode', '/merge'])
    expect(completeSlash('hello', [])).toEqual([])
    expect(completeSlash('/', [])).not.toContain('/exit')
  })
})
