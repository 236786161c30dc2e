import { appendFileSync, chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import type { Problem } from '../config/problem.ts'
import { AccessWatch } from './access-watch.ts'
import type { Principals } from './principals.ts'

let folder: string
let file: string
let watch: AccessWatch | undefined
let told: string[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'access-'))
  file = join(folder, 'access.json')
  told = []
})
afterEach(() => {
  watch?.close()
  rmSync(folder, { recursive: true, force: true })
})

const onChange = (principals: Principals): void => void told.push(principals.names().join(' '))
const onTrouble = (problems: readonly Problem[]): void => void told.push(`trouble: ${problems[0]?.found}`)
const text = (...names: string[]): string =>
  JSON.stringify({ principals: names.map((name) => ({ name, pools: ['*'] })) })

function start() {
  const begun = AccessWatch.start({ file, environment: {}, onChange, onTrouble })
  watch = begun.ok ? begun.watch : undefined
  return begun
}

function put(content: string): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

it('9.10 what it begins with is known, and told no second time', () => {
  put(text('a'))
  const begun = start()
  expect(begun.ok && begun.principals.names()).toEqual(['a'])
  watch?.look()
  expect(told).toEqual([])
})

it('9.9 a file with problems is not begun with', () => {
  expect(start()).toMatchObject({ ok: false, problems: [{ found: 'no such file' }] })
})

it('9.10 each change is told once, whether the file was replaced or written over', () => {
  verifies('9.10-watched')
  put(text('a'))
  start()
  put(text('a', 'b'))
  watch?.look()
  watch?.look()
  writeFileSync(file, text('c'))
  watch?.look()
  appendFileSync(file, '\n// a comment, and the same principals')
  watch?.look()
  expect(told).toEqual(['a b', 'c', 'c'])
})

it('9.9 troubles are told once each, and their end', () => {
  verifies('9.9-old-rights-stay')
  put(text('a'))
  start()
  const looks = (act: () => void): void => {
    act()
    watch?.look()
    watch?.look()
  }
  looks(() => writeFileSync(file, '{ "principals": [{'))
  looks(() => rmSync(file))
  looks(() => put(text('a')))
  looks(() => chmodSync(file, 0o644))
  looks(() => chmodSync(file, 0o600))
  expect(told).toEqual([
    expect.stringMatching(/^trouble: /),
    'trouble: no such file',
    'a',
    'trouble: a file that others may use (mode 0644)',
    'a',
  ])
})

it('9.10 it looks by itself, until it is closed', async () => {
  put(text('a'))
  const changed = new Promise<string>((resolve) => {
    const begun = AccessWatch.start({
      file,
      environment: {},
      onChange: (principals) => resolve(principals.names().join()),
      onTrouble: () => resolve('trouble'),
    })
    watch = begun.ok ? begun.watch : undefined
  })
  put(text('b'))
  expect(await changed).toBe('b')
})
