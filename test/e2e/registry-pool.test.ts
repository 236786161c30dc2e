import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { packAgent } from '../fixtures/registry/pack.ts'

const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const SECRET = 'sk-never-in-a-log'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'registry-pool-'))
  const npx = { package: `file:${packAgent(folder, 'alpha')}`, args: ['--acp'], env: { WHO: 'index', FROM: 'index' } }
  const alpha = { id: 'alpha', name: 'Alpha', version: '1.0.0', distribution: { npx } }
  write('index.json', { version: '1.0.0', agents: [alpha] })
  write('credentials.json', { version: '1.0.0', agents: { alpha: { apiKey: SECRET, apiKeyEnv: 'ALPHA_KEY' } } })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function write(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(content), { mode: 0o600 })
  return path
}

const registry = { index: 'index.json', credentials: 'credentials.json', cache: 'cache' }

/** Sends the lines to a bus in stdio mode and gives back its answers by id, and its log. */
async function ask(config: object, lines: readonly object[]) {
  const file = write('stdio-bus.json', config)
  const env = { ...process.env, HOME: folder, FROM_DAEMON: 'daemon' }
  const bus = spawn(process.execPath, [CLI, '--config', file, '--stdio'], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  let log = ''
  bus.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const answers = new Map<number, Record<string, unknown>>()
  createInterface({ input: bus.stdout }).on('line', (line) => {
    const answer = JSON.parse(line)
    answers.set(answer.id, answer)
  })
  bus.stdin.end(lines.map((line) => `${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`).join(''))
  const [code] = await once(bus, 'close')
  return { code, answers, log }
}

const start = (id: number, variable: string, pool: string) => ({
  id,
  method: '_fixture/start',
  params: { variable },
  pool,
})

describe('a pool that names an agent of the registry', () => {
  it('runs it as a worker, with its arguments, and with variables by precedence', async () => {
    verifies('R4-precedence')
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the reference is the bus's, not ours
    const pool = { id: 'a', registry: 'alpha', args: ['--more'], env: { WHO: 'pool', GIVEN: '${FROM_DAEMON}' } }
    const lines = ['WHO', 'FROM', 'GIVEN', 'ALPHA_KEY', 'FROM_DAEMON'].map((name, at) => start(at, name, 'a'))
    const { code, answers, log } = await ask({ pools: [pool], registry }, lines)
    expect(code).toBe(0)
    expect(answers.get(0)).toMatchObject({ result: { args: ['--acp', '--more'], value: 'pool' } })
    expect([1, 2, 3, 4].map((id) => (answers.get(id) as { result: { value: string } }).result.value)).toEqual([
      'index',
      'daemon',
      SECRET,
      null,
    ])
    expect(log).not.toContain(SECRET)
  })

  it('that cannot be resolved is parked with the reason, and the others serve', async () => {
    verifies('R5-parked')
    const pools = [
      { id: 'a', registry: 'alpha' },
      { id: 'b', registry: 'no-such-agent' },
    ]
    const { code, answers, log } = await ask({ pools, registry }, [start(1, 'WHO', 'a'), start(2, 'WHO', 'b')])
    expect(code).toBe(0)
    expect(answers.get(1)).toMatchObject({ result: { value: 'index' } })
    expect(answers.get(2)).toMatchObject({ error: { code: -32603, data: { reason: 'no_worker' } } })
    expect(log).toContain('no-such-agent')
  })
})
