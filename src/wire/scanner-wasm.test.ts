import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { scanner } from './scanner.ts'

const BUILDER = '../../scripts/build-scanner.mjs'

it('the embedded scanner is the one its source makes; if not, run `npm run build:scanner`', async () => {
  const { compileScanner } = (await import(BUILDER)) as { compileScanner(): Promise<string> }
  const embedded = readFileSync(new URL('./scanner-wasm.ts', import.meta.url), 'utf8')
  expect(embedded).toBe(await compileScanner())
}, 60_000)

it('the scanner runs on this machine', () => {
  expect(scanner).toBeDefined()
})
