/** A million inputs of one seed, `npm run fuzz` takes fresh ones. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const COMMAND = fileURLToPath(new URL('campaign.mjs', import.meta.url))
const TIMEOUT_MS = 480_000
/** At the least, and together a million; the doors are the real program's. */
const LEAST = { envelope: 400_000, framing: 300_000, config: 50_000, stdio: 10_000, unix: 10_000, tcp: 10_000 }

test(
  'a million inputs find nothing',
  async () => {
    const child = spawn(process.execPath, [COMMAND, '--seed', '20'], { stdio: ['ignore', 'pipe', 'ignore'] })
    const report = await text(child.stdout)
    const inputs = new Map(
      [...report.matchAll(/^\| (\w+) +\| ([\d,]+) +\| [\d.]+ +\| 0 +\|/gm)].map(([, target, count]) => [
        target,
        Number(count!.replaceAll(',', '')),
      ]),
    )
    for (const [target, least] of Object.entries(LEAST))
      expect(inputs.get(target), report).toBeGreaterThanOrEqual(least)
    expect(inputs.get('all')).toBeGreaterThanOrEqual(1_000_000)
  },
  TIMEOUT_MS,
)
