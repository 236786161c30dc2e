/**
 * Builds the pages of the console into dist/console/web: files named by their content, compressed beside, and the page that
 * names them (contract 15.21).
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { keepLicences } from './licences.mjs'

export async function buildConsole(root) {
  const source = `${root}/src/console/web`
  const target = `${root}/dist/console/web`
  mkdirSync(`${target}/assets`, { recursive: true })
  const keep = (name, content) => {
    writeFileSync(`${target}/${name}`, content)
    writeFileSync(`${target}/${name}.gz`, gzipSync(content, { level: 9 }))
    return name
  }
  const named = (stem, ending, content) => keep(`assets/${stem}-${hashOf(content)}.${ending}`, content)

  const [worker] = await bundle(`${source}/feed-worker.ts`)
  const workerName = named('feed-worker', 'js', worker.code)
  const [layouter] = await bundle(`${source}/trace/graph-worker.ts`)
  const chunks = await bundle(`${source}/main.tsx`, {
    FEED_WORKER: JSON.stringify(`/console/${workerName}`),
    GRAPH_WORKER: JSON.stringify(`/console/${named('graph-worker', 'js', layouter.code)}`),
  })
  for (const { fileName, code } of chunks.filter(({ isEntry }) => !isEntry)) keep(`assets/${fileName}`, code)
  const script = named('main', 'js', chunks.find(({ isEntry }) => isEntry).code)
  const style = named('style', 'css', stylesOf(source))
  keep('assets/icon.svg', readFileSync(`${source}/icon.svg`, 'utf8'))
  const page = readFileSync(`${source}/index.html`, 'utf8').replace('%SCRIPT%', script).replace('%STYLE%', style)
  keep('index.html', page)
  keepLicences(
    root,
    [worker, layouter, ...chunks].flatMap(({ moduleIds }) => moduleIds),
  )
}

/** What holds for all pages, then what each has of its own. */
function stylesOf(source) {
  const own = readdirSync(`${source}/pages`).filter((name) => name.endsWith('.css'))
  return ['style.css', ...own.sort().map((name) => `pages/${name}`)]
    .map((name) => readFileSync(`${source}/${name}`, 'utf8'))
    .join('\n')
}

/** The entry and what it loads later. */
async function bundle(input, define = {}) {
  const built = await rolldown({
    input,
    platform: 'browser',
    transform: { define, target: 'es2022' },
  })
  const { output } = await built.generate({ format: 'esm', minify: true, chunkFileNames: '[name]-[hash].js' })
  return output.filter(({ type }) => type === 'chunk')
}

function hashOf(content) {
  return createHash('sha256').update(content).digest('hex').slice(0, 10)
}
