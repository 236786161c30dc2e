/**
 * `check` and `serve` agree on what would start, over all of test/fixtures/configs: a file without errors becomes ready, and
 * one with errors does not (contract 8.4).
 */
import { spawn } from 'node:child_process'
import { cpSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { busCommand, busEnv } from '../support/bus.ts'
import { run } from '../support/run.ts'
import { Workspace } from '../support/workspace.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/configs/', import.meta.url))
const files = readdirSync(FIXTURES).filter((name) => name.endsWith('.conf'))
const SIDE_BY_SIDE = 3

interface Verdict {
  readonly checked: number | null
  /** Or how it ended before it was ready. */
  readonly served: 'ready' | number | null
  readonly said: string
}

const verdicts = new Map<string, Verdict>()
const workspaces: Workspace[] = []

/** A world of its own for each: buses of one HOME would find each other. */
async function judge(file: string): Promise<Verdict> {
  const workspace = new Workspace()
  workspaces.push(workspace)
  cpSync(FIXTURES, workspace.folder, { recursive: true })
  const [command, first] = busCommand()
  const options = { cwd: workspace.folder, env: busEnv(workspace), timeoutMs: 30_000 }
  const checked = await run(command, [...first, 'check', '--config', file], options)
  const { served, said } = await serve(file, workspace)
  return { checked: checked.code, served, said: `${checked.stdout}${said}` }
}

function serve(file: string, workspace: Workspace): Promise<Pick<Verdict, 'served' | 'said'>> {
  const [command, first] = busCommand()
  const args = [...first, 'serve', '--config', file, '--log-format', 'json']
  const child = spawn(command, args, { cwd: workspace.folder, env: busEnv(workspace), stdio: 'pipe' })
  workspace.owns(child.pid)
  let said = ''
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
      if (said.includes('"msg":"ready"')) child.kill()
    })
    child.once('close', (code) => resolve({ served: said.includes('"msg":"ready"') ? 'ready' : code, said }))
  })
}

beforeAll(async () => {
  const waiting = [...files]
  const judgeNext = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) verdicts.set(file, await judge(file))
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, judgeNext))
}, 180_000)

afterAll(() => Promise.all(workspaces.map((workspace) => workspace.remove())))

describe('check and serve agree', () => {
  test.each(files)('on %s', (file) => {
    verifies('8.4-agree')
    const { checked, served, said } = verdicts.get(file)!
    expect([0, 2], said).toContain(checked)
    expect(served === 'ready', said).toBe(checked === 0)
    if (checked === 2) expect([1, 2], said).toContain(served)
    expect(said).not.toMatch(/^\s+at /m)
  })

  test('on some that start and some that do not', () => {
    const codes = [...verdicts.values()].map(({ checked }) => checked)
    expect(codes).toEqual(expect.arrayContaining([0, 2]))
  })
})
