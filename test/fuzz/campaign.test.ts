/**
 * A short run of the fuzzing with a fixed seed, the corpus included; and proof that it notices: each planted bug is found.
 *
 * It runs the command as people do, on what is built in dist/.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const COMMAND = join(ROOT, 'test/fuzz/campaign.mjs')
const TIMEOUT_MS = 60_000

function fuzz(...args: string[]): { status: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [COMMAND, '--seed', '7', ...args], {
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  })
  return { status, text: stdout + stderr }
}

describe('a short run', () => {
  it(
    'finds nothing in framing, envelope and configuration, and meets every kind of input',
    () => {
      const { status, text } = fuzz('--only', 'envelope,framing,config', '--count', '8000')
      expect(text).toMatch(/^\| all +\| [89],\d{3} .*\| 0 /m)
      for (const kind of ['notJson', 'bad', 'request', 'notification', 'response', 'too long', 'accepted', 'refused'])
        expect(text).toContain(kind)
      expect(status, text).toBe(0)
    },
    TIMEOUT_MS,
  )

  it(
    'finds nothing at the doors of the program',
    () => {
      const { status, text } = fuzz('--only', 'doors', '--count', '300')
      for (const reason of ['served', 'not_json', 'bad_envelope', 'message_too_large']) expect(text).toContain(reason)
      expect(status, text).toBe(0)
    },
    TIMEOUT_MS,
  )

  it(
    'finds nothing at the web door: heads, bodies and frames',
    () => {
      const { status, text } = fuzz('--only', 'web', '--count', '400')
      for (const way of ['http', 'frames', 'wounded http', 'wounded frames']) expect(text).toContain(way)
      expect(status, text).toBe(0)
    },
    TIMEOUT_MS,
  )

  it('refuses a target that does not exist', () => {
    expect(fuzz('--only', 'windows')).toMatchObject({ status: 2, text: expect.stringContaining('choose of doors') })
  })
})

/** One line of the built program, changed; which target must notice. */
const PLANTED = [
  {
    target: 'framing',
    file: 'wire/frame.js',
    find: 'end - start <= this.maxLineBytes',
    replace: 'end - start < this.maxLineBytes',
  },
  { target: 'envelope', file: 'wire/envelope.js', find: 'if (isResponse) return', replace: 'if (false) return' },
  { target: 'config', file: 'config/source.js', find: 'line: line + 1', replace: 'line: line + 2' },
  { target: 'unix', file: 'kernel/faults.js', find: 'code: CODE.parseError', replace: 'code: CODE.invalidRequest' },
  { target: 'web', file: 'web/body.js', find: '|| isEncoded(request)', replace: '' },
]

/** What is kept of a finding, at the most: at a door several connections are under way, and which is found out first is chance. */
const MOST_KEPT: Record<string, number> = { unix: 2_000, web: 50_000 }

describe('a planted bug', () => {
  let folder: string

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sb-planted-'))
    for (const { target } of PLANTED) {
      mkdirSync(join(folder, target, 'corpus'), { recursive: true })
      cpSync(join(ROOT, 'package.json'), join(folder, target, 'package.json'))
      cpSync(join(ROOT, 'dist'), join(folder, target, 'dist'), { recursive: true })
      symlinkSync(join(ROOT, 'node_modules'), join(folder, target, 'node_modules'))
    }
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each(PLANTED)(
    'in $file is found by $target, shrunk and kept',
    ({ target, file, find, replace }) => {
      const root = join(folder, target)
      const text = readFileSync(join(root, 'dist', file), 'utf8')
      expect(text.split(find), `${file} holds "${find}" once`).toHaveLength(2)
      // Once in the module, which some targets import, and once in the bundle of the program.
      const chunks = readdirSync(join(root, 'dist/chunks')).map((name) => `chunks/${name}`)
      for (const path of [file, ...chunks].map((name) => join(root, 'dist', name))) {
        writeFileSync(
          path,
          readFileSync(path, 'utf8').replace(find, () => replace),
        )
      }
      const run = fuzz('--only', target, '--count', '2000', '--root', root, '--corpus', join(root, 'corpus'))
      expect(run.status, run.text).toBe(1)
      expect(run.text).toContain('FOUND')
      const kept = readFileSync(join(root, 'corpus', `${target === 'unix' ? 'doors' : target}.txt`), 'utf8')
      expect(kept.split('\n')[0]!.length).toBeLessThan(MOST_KEPT[target] ?? 200)
    },
    TIMEOUT_MS,
  )
})
