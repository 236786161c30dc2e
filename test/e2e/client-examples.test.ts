/** The examples of the client library: each starts its own bus and checks itself. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

test.each([
  ['acp-client', /each with its own words/],
  ['mcp-client', /outlived its bus/],
  ['mcp-client-legacy', /at the client that asked/],
  ['line-client', /a refusal with its reason/],
  ['worker', /each for itself/],
  ['embedded', /left nothing behind/],
])('%s', async (name, last) => {
  const program = fileURLToPath(new URL(`../../examples/${name}/run.mjs`, import.meta.url))
  const { stdout } = await run(process.execPath, [program], { timeout: 18_000 })
  expect(stdout).toMatch(last)
})
