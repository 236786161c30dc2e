/** Every link and picture of README and the guides leads to a file that is there, and its fragment to a heading of it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const LINK = /!?\[[^\]]*\]\(([^()\s]+)\)|<img src="([^"]+)"/g
const ELSEWHERE = /^[a-z]+:/
/** Guides to parts that are specified before they are described. */
const COMING = ['docs/console.md'].map((name) => join(ROOT, name))
const pages = ['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', 'SECURITY.md', 'CHANGELOG.md'].concat(
  readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
)

/** As it is written in a fragment. */
function anchorsOf(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

function problemWith(page: string, target: string): string | undefined {
  const [file = '', fragment] = target.split('#')
  const path = normalize(join(ROOT, file === '' ? page : join(dirname(page), file)))
  if (!existsSync(path)) return COMING.includes(path) ? undefined : `${page} leads to ${target}, which is not there`
  if (fragment === undefined || !path.endsWith('.md') || anchorsOf(path).includes(fragment)) return undefined
  return `${page} leads to ${target}, which has no such heading`
}

test.each(pages)('the links of %s lead somewhere', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8').replace(/^( *)(`{3,})[\s\S]*?^\1\2$/gm, '')
  const targets = [...text.matchAll(LINK)].map(([, link, picture]) => (link ?? picture)!)
  const problems = targets.filter((target) => !ELSEWHERE.test(target)).map((target) => problemWith(page, target))
  expect(problems.filter((problem) => problem !== undefined)).toEqual([])
})
