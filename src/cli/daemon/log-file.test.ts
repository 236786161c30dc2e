import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { LogFile } from './log-file.ts'
import { RecentLines } from './recent-lines.ts'

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'log-file-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

test('a file over its bound begins anew, and the part before is beside it', () => {
  const path = join(folder(), 'x.log')
  const log = new LogFile(path, 30)
  for (let line = 0; line < 7; line++) log.write(`line ${line} ....\n`)
  log.close()
  expect(readFileSync(`${path}.1`, 'utf8')).toBe('line 4 ....\nline 5 ....\n')
  expect(readFileSync(path, 'utf8')).toBe('line 6 ....\n')
})

test('what was there counts, and is kept', () => {
  const path = join(folder(), 'x.log')
  writeFileSync(path, 'old old old old old old old\n')
  const log = new LogFile(path, 30)
  log.write('new\n')
  log.close()
  expect([readFileSync(path, 'utf8'), readFileSync(`${path}.1`, 'utf8')]).toEqual([
    'new\n',
    'old old old old old old old\n',
  ])
})

test('nothing is written through a link', () => {
  const made = folder()
  symlinkSync(join(made, 'elsewhere'), join(made, 'x.log'))
  expect(() => new LogFile(join(made, 'x.log'))).toThrow('symbolic link')
})

test('recent lines: the oldest go first, by number and by size, and the newest always stays', () => {
  const few = new RecentLines({ maxLines: 3, maxChars: 10 })
  const heard: string[] = []
  const leave = few.follow((line) => heard.push(line))
  for (const line of ['a', 'b', 'c', 'd']) few.push(line)
  expect(few.all()).toEqual(['b', 'c', 'd'])
  few.push('12345678')
  expect(few.all()).toEqual(['c', 'd', '12345678'])
  leave()
  few.push('much longer than everything')
  expect(few.all()).toEqual(['much longer than everything'])
  expect(heard).toEqual(['a', 'b', 'c', 'd', '12345678'])
  for (let line = 0; line < 100; line++) few.push(String(line))
  expect(few.all()).toEqual(['97', '98', '99'])
})
