/** Every command that measures or proves something says what it takes, and runs nothing for that. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = new URL('../', import.meta.url)
const SCRIPTS: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL('package.json', ROOT), 'utf8'),
).scripts

/** Those that take something of their own; the others set up, build and check. */
const COMMANDS = Object.values(SCRIPTS).flatMap((script) => /\bnode ((?:bench|test)\/\S+\.mjs)/.exec(script)?.[1] ?? [])
const BENCHES = [
  'access',
  'aggregate',
  'aio',
  'cluster',
  'connect',
  'console',
  'mcp',
  'openai-agent',
  'sessions',
  'web',
]
const RUNNERS = [...new Set([...COMMANDS, ...BENCHES.map((name) => `bench/${name}.mjs`), 'bench/trace-store.mjs'])]

function run(runner: string, argument: string) {
  return spawnSync(process.execPath, [runner, argument], {
    cwd: fileURLToPath(ROOT),
    encoding: 'utf8',
    timeout: 30_000,
  })
}

test.each(RUNNERS)('%s --help', { timeout: 40_000 }, (runner) => {
  const { status, stdout } = run(runner, '--help')
  expect(stdout).toMatch(/^usage: /i)
  expect(status).toBe(0)
})

test.each(RUNNERS)('%s with an option that it does not know', { timeout: 40_000 }, (runner) => {
  const { status, stdout, stderr } = run(runner, '--no-such-option')
  expect(stderr).toMatch(/no-such-option[\s\S]*usage: /i)
  expect(stdout).toBe('')
  expect(status).toBe(2)
})
