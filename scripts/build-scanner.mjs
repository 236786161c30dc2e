/** Compiles assembly/ to WebAssembly and embeds it in src/wire/scanner-wasm.ts; the result is committed, so a build needs no compiler. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'

const root = fileURLToPath(new URL('..', import.meta.url))
const PAGES = '20'

/** The text of the generated file. */
export async function compileScanner() {
  const written = new Map()
  const { error, stderr } = await asc.main(
    [
      'assembly/scanner.ts',
      ...['--baseDir', root, '--outFile', 'scanner.wasm', '--enable', 'simd', '--runtime', 'stub', '--noAssert'],
      ...['-O3', '--converge', '--initialMemory', PAGES, '--maximumMemory', PAGES],
    ],
    { readFile: readSource, writeFile: (name, contents) => void written.set(name, contents) },
  )
  if (error) throw new Error(`assembly/ does not compile:\n${stderr}`, { cause: error })
  return embed(Buffer.from(written.get('scanner.wasm')).toString('base64'))
}

/** AssemblyScript has a decorator for functions, which TypeScript has not: the sources have it as a comment. */
function readSource(name, baseDir) {
  const path = resolve(baseDir, name)
  return existsSync(path) ? readFileSync(path, 'utf8').replace(/^\/\/ @inline$/gm, '@inline') : null
}

function embed(base64) {
  return `/** Made from assembly/ by \`npm run build:scanner\`; not to be edited. */\nexport const SCANNER_WASM =\n  '${base64}'\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(`${root}/src/wire/scanner-wasm.ts`, await compileScanner())
}
