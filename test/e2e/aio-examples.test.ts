/** The examples of AIO: each starts its own bus and checks itself. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

test.each([
  ['aio-seed', /Every message of the whitepaper/],
  ['aio-pipeline', /the graph is what happened/],
  ['aio-model', /Extracted, summarised and spoken/],
])('%s', async (name, last) => {
  const program = fileURLToPath(new URL(`../../examples/${name}/run.mjs`, import.meta.url))
  const { stdout } = await run(process.execPath, [program], { timeout: 18_000 })
  expect(stdout).toMatch(last)
})
