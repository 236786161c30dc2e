/** Every runner says what it does and takes without running anything. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { scripts: Record<string, string> }
const RUNNERS = [
  'chaos',
  'soak',
  'simulate',
  'simulate:planted',
  'simulate:long',
  'mutants',
  'fuzz',
  'interop',
  'bench',
]

function run(name: string, ...more: string[]) {
  const [program, ...args] = scripts[name]!.split(' ')
  expect(program).toBe('node')
  return promisify(execFile)(process.execPath, [...args, ...more], { cwd: ROOT, timeout: 60_000 })
}

test.each(RUNNERS)('npm run %s -- --help', async (name) => {
  const { stdout, stderr } = await run(name, '--help')
  expect(stdout).toMatch(new RegExp(`^usage: npm run ${name}`, 'i'))
  expect(stderr).toBe('')
})

test.each(RUNNERS)('npm run %s with an option it does not have is exit 2', async (name) => {
  await expect(run(name, '--no-such-option')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no-such-option/),
  })
})
