/** The code blocks of a page of Markdown, as tests use them: in order, with what their info string says. */
import { readdirSync, readFileSync } from 'node:fs'

export interface Block {
  readonly line: number
  readonly language: string
  /** What follows the language. */
  readonly info: string
  readonly text: string
}

export interface Page {
  readonly name: string
  readonly blocks: readonly Block[]
}

const ROOT = new URL('../../', import.meta.url)
const FENCE = /^( *)(`{3,})(\S*) ?(.*)\n([\s\S]*?)^\1\2$/gm

export function readPage(name: string): Page {
  const text = readFileSync(new URL(name, ROOT), 'utf8')
  const blocks = [...text.matchAll(FENCE)].map(({ index, 3: language = '', 4: info = '', 5: body = '' }) => ({
    line: text.slice(0, index).split('\n').length,
    language,
    info: info.trim(),
    text: body,
  }))
  return { name, blocks }
}

/** README and the guides. */
export function readPages(): Page[] {
  const guides = readdirSync(new URL('docs/', ROOT)).filter((name) => name.endsWith('.md'))
  return ['README.md', ...guides.sort().map((name) => `docs/${name}`)].map(readPage)
}
