/**
 * Every command of README and the guides is run as it is written, page by page, in a folder and a HOME of its own.
 *
 * A block of `sh` is run; one that needs the world is marked `sh no-run: REASON`. A block whose info string is the name of a
 * file is put there first. All blocks of a page share their folder, in their order. How many ran is printed.
 *
 * Ports are those of the pages, except that each page has free ones in their place; at the port of Ollama a model answers,
 * and the index of agents is one of this machine.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type ParseError, parse } from 'jsonc-parser'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { says } from '../../src/agents/demo-endpoint/reply.ts'
import { startEndpoint } from '../../src/agents/demo-endpoint/server.ts'
import { parseConfig } from '../../src/config/read.ts'
import { currentPlatform } from '../../src/registry/platform.ts'
import { tarGz } from '../fixtures/registry/archives.ts'
import { startIndexServer } from '../fixtures/registry/index-server.ts'
import { busCommand, busEnv, testWorkspace } from '../support/bus.ts'
import { freePort } from '../support/nats.ts'
import { run } from '../support/run.ts'
import type { Workspace } from '../support/workspace.ts'
import { type Block, type Page, readPages } from './markdown-blocks.ts'

/** Pages whose commands another test runs, with what it takes to run them. */
const ELSEWHERE: Readonly<Record<string, string>> = { 'docs/access.md': 'test/docs/access.test.ts' }
const NO_RUN = /^no-run: (?<reason>\S.*)$/
const FILE_NAME = /^[\w./-]+\.\w+$/
const BLOCK_TIMEOUT_MS = 60_000

const WEB_PORT = /\b7800\b/g
const MODEL_PORT = /\b11434\b/g
const TOOLS = fileURLToPath(new URL('../../node_modules/.bin', import.meta.url))

const pages = readPages()
const commandsOf = ({ blocks }: Page): Block[] => blocks.filter(({ language }) => language === 'sh')
const tally = { ran: 0, elsewhere: 0, marked: 0 }

/** An index with the agent that the pages name: a program that ends with its input. */
async function startIndex(): Promise<string> {
  const server = await startIndexServer()
  onTestFinished(() => server.close())
  const archive = tarGz([{ name: 'agent', content: '#!/bin/sh\ncat > /dev/null\n', executable: true }])
  const sha256 = createHash('sha256').update(archive).digest('hex')
  server.pages.set('/agent.tgz', archive)
  const binary = { [currentPlatform()!]: { archive: `${server.url}/agent.tgz`, cmd: './agent', sha256 } }
  const gemini = { id: 'gemini', name: 'gemini', version: '1.0.0', description: 'an agent', distribution: { binary } }
  server.pages.set('/index.json', JSON.stringify({ version: '1.0.0', agents: [gemini] }))
  return `${server.url}/index.json`
}

function environment(workspace: Workspace): Record<string, string> {
  const [command, args] = busCommand()
  const bin = workspace.path('.bin')
  mkdirSync(bin, { recursive: true })
  const words = [command, ...args].map((word) => `'${word}'`).join(' ')
  writeFileSync(`${bin}/stdio-bus`, `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 })
  const env = busEnv(workspace)
  return { ...env, PATH: `${bin}:${TOOLS}:${env['PATH']}` }
}

/** What is printed goes to files, as at a terminal: commands of one block share no socket that one of them may shut. */
async function runBlock({ text, line }: Block, { name, index }: Stage, workspace: Workspace): Promise<void> {
  const env = { ...environment(workspace), STDIO_BUS_REGISTRY: index }
  const script = `exec > .printed 2>&1\n${text}`
  const done = await run('sh', ['-ec', script], { cwd: workspace.folder, env, stdin: '', timeoutMs: BLOCK_TIMEOUT_MS })
  expect(done, `${name}:${line}\n${text}\n${workspace.read('.printed')}`).toMatchObject({ code: 0 })
}

interface Stage extends Page {
  /** Where agents are looked up. */
  readonly index: string
}

/** The page with ports of its own, a model behind one of them, and an index of agents. */
async function stageFor(page: Page): Promise<Stage> {
  const model = await startEndpoint({ script: () => says('I am a model.'), models: [{ id: 'llama3.2' }], memory: 1 })
  onTestFinished(() => model.close())
  const web = String(await freePort())
  const own = (text: string): string => text.replace(WEB_PORT, web).replace(MODEL_PORT, new URL(model.url).port)
  return {
    ...page,
    index: await startIndex(),
    blocks: page.blocks.map((block) => ({ ...block, text: own(block.text) })),
  }
}

describe('commands', () => {
  test.each(pages.filter((page) => commandsOf(page).length > 0 && !(page.name in ELSEWHERE)))(
    'of $name do what the page says',
    async (written) => {
      const page = await stageFor(written)
      const workspace = testWorkspace()
      for (const block of page.blocks) {
        if (FILE_NAME.test(block.info)) workspace.write(block.info, block.text)
        if (block.language !== 'sh') continue
        if (NO_RUN.test(block.info)) {
          tally.marked += 1
          continue
        }
        expect(block.info, `${page.name}:${block.line}`).toBe('')
        await runBlock(block, page, workspace)
        tally.ran += 1
      }
    },
    180_000,
  )

  test('stand in blocks that are run', () => {
    const astray = pages.flatMap(({ name, blocks }) =>
      blocks
        .filter(({ language, text }) => language === '' && /^(?:\$ )?stdio-bus /m.test(text))
        .map(({ line }) => `${name}:${line} has commands and is no block of sh`),
    )
    expect(astray).toEqual([])
  })

  afterAll(() => {
    for (const page of pages) if (page.name in ELSEWHERE) tally.elsewhere += commandsOf(page).length
    const { ran, elsewhere, marked } = tally
    process.stdout.write(
      `docs: ${ran} blocks of commands ran here and ${elsewhere} in ${Object.values(ELSEWHERE)}; ${marked} need the world\n`,
    )
  })
})

describe('files', () => {
  const json = pages.flatMap((page) =>
    page.blocks.filter(({ language }) => /^jsonc?$/.test(language)).map((block) => ({ name: page.name, block })),
  )

  test.each(json)('$name:$block.line is well-formed', ({ block }) => {
    const isMember = /^\s*"/.test(block.text)
    const errors: ParseError[] = []
    parse(isMember ? `{${block.text}}` : block.text, errors, { allowTrailingComma: true })
    expect(errors).toEqual([])
  })

  test.each(json.filter(({ block }) => /^\s*\{\s*"(?:\$schema|pools)"/.test(block.text)))(
    '$name:$block.line is a configuration that the bus takes',
    ({ block }) => {
      const environment = new Proxy<Record<string, string>>({}, { get: () => '/set', has: () => true })
      const reading = parseConfig('stdio-bus.json', block.text, { environment })
      expect(reading.ok ? [] : reading.problems).toEqual([])
    },
  )

  test.each(
    pages.flatMap((page) =>
      page.blocks.filter(({ info }) => /\.m?js$/.test(info)).map((block) => ({ name: page.name, block })),
    ),
  )('$name:$block.line is a program', ({ block }) => {
    const { status, stderr } = spawnSync(process.execPath, ['--check', '--input-type=module', '-'], {
      input: block.text,
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
  })
})
