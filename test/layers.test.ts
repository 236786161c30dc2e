/** The direction of dependencies, read from the imports themselves: an offending line is named. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const SRC = new URL('../src/', import.meta.url)

/** Each room and the rooms it may import from; `npm` stands for packages, `node` for the runtime. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  host: ['node', 'npm'],
  kernel: ['wire'],
  dialects: ['kernel', 'wire'],
  transports: ['kernel', 'host', 'node'],
  web: ['transports', 'kernel', 'wire', 'host', 'node', 'npm'],
  process: ['kernel', 'wire', 'node'],
  config: ['kernel', 'host', 'node', 'npm'],
  console: ['web', 'kernel', 'wire', 'host', 'node', 'npm'],
  access: ['config', 'kernel', 'wire', 'host', 'node', 'npm'],
  trace: ['kernel', 'wire', 'host', 'node', 'npm'],
  journal: ['kernel', 'host', 'node'],
  aio: ['wire', 'node', 'npm'],
  aggregate: ['kernel', 'wire', 'node'],
  registry: ['process', 'wire', 'host', 'node', 'npm'],
  client: ['wire', 'host', 'node', 'npm'],
  worker: ['wire', 'node'],
  agents: ['wire', 'node', 'npm'],
  remote: ['wire', 'host', 'node', 'npm'],
  cluster: ['kernel', 'node', 'npm'],
}

/** Rooms that only assemble, and programs that are a bus inside. */
const ASSEMBLES = ['cli', 'embed', 'agents/registry']

interface Import {
  readonly file: string
  readonly line: number
  readonly from: string
  readonly to: string
}

function importsOf(file: string): Import[] {
  const text = readFileSync(new URL(file, SRC), 'utf8')
  return text.split('\n').flatMap((content, index) => {
    const target = /(?:^import|^export|^\} from|\bimport\()\s*(?:.*?\sfrom\s)?['"]([^'"]+)['"]/.exec(content)?.[1]
    return target === undefined ? [] : [{ file, line: index + 1, from: file.split('/')[0]!, to: roomOf(file, target) }]
  })
}

function roomOf(file: string, target: string): string {
  if (target.startsWith('node:')) return 'node'
  if (!target.startsWith('.')) return 'npm'
  return new URL(target, new URL(file, SRC)).pathname.slice(SRC.pathname.length).split('/')[0]!
}

const files = readdirSync(SRC, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.endsWith('.d.ts'))
const assembles = (file: string): boolean => ASSEMBLES.some((room) => file.startsWith(`${room}/`))

describe('layers', () => {
  test('every import goes the one way', () => {
    const offending = files
      .filter((file) => !assembles(file))
      .flatMap(importsOf)
      .filter(({ from, to }) => from !== to && !(MAY_IMPORT[from] ?? []).includes(to))
      .map(({ file, line, to }) => `src/${file}:${line} imports from ${to}`)
    expect(offending).toEqual([])
  })

  test('the kernel, the wire and the dialects read no clock, no chance and nothing of the runtime', () => {
    const forbidden =
      /\b(Date\.now|new Date|performance\.|Math\.random|process\.|setTimeout|setInterval|setImmediate|queueMicrotask|require)\b/
    const offending = files
      .filter((file) => /^(kernel|wire|dialects)\//.test(file))
      .flatMap((file) =>
        readFileSync(new URL(file, SRC), 'utf8')
          .split('\n')
          .flatMap((content, index) => (forbidden.test(content) ? [`src/${file}:${index + 1} ${content.trim()}`] : [])),
      )
    expect(offending).toEqual([])
  })

  /** What several rooms need is written once, in a leaf; the others that are named here only refuse or describe. */
  test.each([
    ['what does not print', /\\(?:u00|x)1f/, ['wire/printable.ts', 'config/pool-schema.ts', 'aio/modalities.ts']],
    ['an address with a port', /\\d\{1,5\}|\b65_?535\b/, ['host/address.ts', 'config/address.ts', 'config/rules.ts']],
  ])('%s is known in one place', (_what, mark, places) => {
    const found = files.filter((file) => mark.test(readFileSync(new URL(file, SRC), 'utf8')))
    expect(found.filter((file) => !places.includes(file))).toEqual([])
  })
})
