/** A short run of the hostile admissions with a fixed seed, as people run it, on what is built in dist/. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'

const COMMAND = fileURLToPath(new URL('admission.mjs', import.meta.url))
const TIMEOUT_MS = 90_000

function attack(...args: string[]) {
  return spawnSync(process.execPath, [COMMAND, ...args], { encoding: 'utf8', timeout: TIMEOUT_MS })
}

test(
  'nobody comes in, no worker hears of it, and a good client is served meanwhile',
  () => {
    verifies('9.3-hostile')
    const { status, stdout, stderr } = attack('--seed', '11', '--count', '650', '--crowd', '0')
    expect(status, stdout + stderr).toBe(0)
    expect(stdout).toMatch(/650 hostile connections .* 0 findings/)
    expect(stdout).toMatch(/admitted 0$/m)
  },
  TIMEOUT_MS,
)

test('--help says what it does and does nothing; a wrong option is exit 2', () => {
  const help = attack('--help')
  expect(help).toMatchObject({ status: 0, stdout: expect.stringContaining('--count N') })
  expect(attack('--what')).toMatchObject({ status: 2 })
  expect(attack('--count', 'many')).toMatchObject({ status: 2 })
})
