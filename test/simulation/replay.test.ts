import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { addReplay } from '../../src/cli/commands/replay.ts'
import { Recorder } from '../../src/cli/daemon/recorder.ts'
import { Divergence, replay } from '../../src/cli/recording/replay.ts'
import { Pool } from '../../src/kernel/pools.ts'
import { isAccessSeed } from './access-scenario.ts'
import { simulate } from './simulate.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stdio-bus-replay-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

/** Records a simulated night; returns the file and how many events it had. */
async function record(seed: number, hasPayloads: boolean, events = 400): Promise<{ file: string; events: number }> {
  const file = join(folder, `${seed}-${hasPayloads}.ndjson`)
  let recorder: Recorder | undefined
  const outcome = await simulate({
    seed,
    events,
    witness: (spec) => {
      recorder = new Recorder(spec, { file, hasPayloads, onTrouble: (message) => expect.fail(message) })
      return recorder
    },
  })
  await recorder!.close()
  expect(outcome.violation).toBeUndefined()
  return { file, events: outcome.events }
}

test.each([true, false])(
  'the kernel decides the same over its recording (payloads: %s)',
  { timeout: 60_000 },
  async (hasPayloads) => {
    for (let seed = 1; seed <= 25; seed++) {
      // Which tools a caller may use is decided by their names, and those are payload.
      if (!hasPayloads && isAccessSeed(seed)) continue
      const { file, events } = await record(seed, hasPayloads)
      const verdict = await replay(file)
      expect(verdict.events, `seed ${seed}`).toBe(events)
      expect(verdict.decisions).toBeGreaterThan(0)
    }
  },
)

test('a kernel that decides otherwise fails the replay', async () => {
  const { file } = await record(2, false)
  const next = Pool.prototype.next
  let turns = 0
  // Once it finds no worker although one is ready.
  vi.spyOn(Pool.prototype, 'next').mockImplementation(function (this: Pool) {
    const worker = next.call(this)
    return worker !== undefined && turns++ === 0 ? undefined : worker
  })
  await expect(replay(file)).rejects.toThrow(Divergence)
})

test('a decision that was changed in the file is noticed and named', async () => {
  const { file } = await record(3, true)
  const text = readFileSync(file, 'utf8')
  const changed = text.replace(/"close-client (\d+) flush"/, '"close-client $1 drop"')
  expect(changed).not.toBe(text)
  writeFileSync(file, changed)
  await expect(replay(file)).rejects.toThrow(/recorded: close-client \d+ drop\n {2}now: {6}close-client \d+ flush/)
})

test('only its owner can read a recording, and none is written over', async () => {
  const { file } = await record(1, false, 50)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const again = { file, hasPayloads: false, onTrouble: () => {} }
  expect(() => new Recorder({ pools: [], defaultPool: undefined, limits: {} as never }, again)).toThrow(
    /exists already/,
  )
})

test('without payloads no payload is in the file', async () => {
  const { file } = await record(4, false)
  const sent = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('["sent"'))
    .map((line) => Buffer.from(JSON.parse(line)[2] as string, 'base64').toString('latin1'))
    .join('\n')
  expect(sent).toContain('"method":"')
  expect(sent).not.toContain('pad')
  expect(sent).not.toMatch(/x?y{20}/)
})

test('a recording that was cut off is replayed up to there', async () => {
  const { file } = await record(5, false)
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.slice(0, Math.floor(text.length / 2)))
  const verdict = await replay(file)
  expect(verdict.events).toBeGreaterThan(10)
})

test('the command shows a stretch as a sequence diagram', async () => {
  const { file } = await record(6, false)
  let shown = ''
  const program = new Command().exitOverride()
  addReplay(program, (text) => {
    shown += text
  })
  await program.parseAsync(['replay', file, '--from', '1', '--to', '120'], { from: 'user' })
  expect(shown).toMatch(/client 1 +.*bus +worker 0/)
  expect(shown).toMatch(/─▶│/)
  expect(shown).toMatch(/│◀─/)
  expect(shown).toMatch(/decisions and \d+ lines out: the same\n$/)
  const missing = program.parseAsync(['replay', join(folder, 'nowhere')], { from: 'user' })
  await expect(missing).rejects.toThrow(/there is no/)
})
