/** A tenth of a whole run, of one seed; `npm run fuzz` takes a million fresh inputs. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const COMMAND = fileURLToPath(new URL('campaign.mjs', import.meta.url))
const TIMEOUT_MS = 480_000
const COUNT = 100_000
/** At the least; the doors are the real program's. */
const LEAST = { envelope: 40_000, framing: 30_000, config: 5_000, stdio: 1_000, unix: 1_000, tcp: 1_000 }

test(
  'inputs for every target find nothing',
  async () => {
    const child = spawn(process.execPath, [COMMAND, '--seed', '20', '--count', String(COUNT)], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const report = await text(child.stdout)
    const inputs = new Map(
      [...report.matchAll(/^\| (\w+) +\| ([\d,]+) +\| [\d.]+ +\| 0 +\|/gm)].map(([, target, count]) => [
        target,
        Number(count!.replaceAll(',', '')),
      ]),
    )
    for (const [target, least] of Object.entries(LEAST))
      expect(inputs.get(target), report).toBeGreaterThanOrEqual(least)
    expect(inputs.get('all')).toBeGreaterThanOrEqual(COUNT)
  },
  TIMEOUT_MS,
)
