/**
 * Every command of README and the guides is run as it is written, page by page, in a folder and a HOME of its own.
 *
 * Every block of `sh` is run. A block whose info string is the name of a file is put there first. All blocks of a page share
 * their folder, in their order. How many ran is printed.
 *
 * Ports are those of the pages, except that each page has free ones in their place; at the port of Ollama a model answers,
 * the index of agents is one of this machine, and so is all else that a page needs of the world (stand-ins.ts).
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
import { npmEnvironment, removeClone, STAND_INS, type StandIn } from './stand-ins.ts'

/** Pages whose commands another test runs, with what it takes to run them. */
const ELSEWHERE: Readonly<Record<string, string>> = { 'docs/access.md': 'test/docs/access.test.ts' }
const FILE_NAME = /^[\w./-]+\.\w+$/
const OF_NPM = /^npm /m
const BLOCK_TIMEOUT_MS = 170_000
const PAGE_TIMEOUT_MS = 300_000

const WEB_PORT = /\b7800\b/g
const MODEL_PORT = /\b11434\b/g
const TOOLS = fileURLToPath(new URL('../../node_modules/.bin', import.meta.url))

const pages = readPages()
const commandsOf = ({ blocks }: Page): Block[] => blocks.filter(({ language }) => language === 'sh')
const tally = { ran: 0, elsewhere: 0 }

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
  // What the page itself has installed comes first.
  return { ...env, PATH: `${workspace.path('prefix/bin')}:${bin}:${TOOLS}:${env['PATH']}` }
}

/** What is printed goes to files, as at a terminal: commands of one block share no socket that one of them may shut. */
async function runBlock({ text, line }: Block, stage: Stage, workspace: Workspace): Promise<void> {
  const { asked } = stage.standIn
  const where = `${stage.name}:${line}`
  if (asked === undefined) return void (await runScript(text, stage, workspace, where))
  for (const command of text.trimEnd().split('\n'))
    expect(await runScript(command, stage, workspace, where), where).toContain('"result"')
}

async function runScript(text: string, stage: Stage, workspace: Workspace, where: string): Promise<string> {
  const { index, standIn } = stage
  const isOfNpm = OF_NPM.test(text)
  const env = isOfNpm
    ? npmEnvironment(workspace)
    : { ...environment(workspace), STDIO_BUS_REGISTRY: index, ...standIn.env }
  const cwd = (isOfNpm ? standIn.tree : undefined) ?? workspace.folder
  const script = `exec > '${workspace.path('.printed')}' 2>&1\n${text}`
  const stdin = standIn.asked === undefined ? '' : `${standIn.asked}\n`
  const done = await run('sh', ['-ec', script], { cwd, env, stdin, timeoutMs: BLOCK_TIMEOUT_MS })
  const printed = workspace.read('.printed')
  expect(done, `${where}\n${text}\n${printed}`).toMatchObject({ code: 0 })
  return printed
}

interface Stage extends Page {
  /** Where agents are looked up. */
  readonly index: string
  readonly standIn: StandIn
}

/** The page with addresses of its own, a model behind one of them, an index of agents, and what else it needs. */
async function stageFor(page: Page, workspace: Workspace): Promise<Stage> {
  const model = await startEndpoint({ script: () => says('I am a model.'), models: [{ id: 'llama3.2' }], memory: 1 })
  onTestFinished(() => model.close())
  const web = String(await freePort())
  const standIn = (await STAND_INS[page.name]?.(workspace)) ?? {}
  const own = (text: string): string => {
    let stood = text.replace(WEB_PORT, web).replace(MODEL_PORT, new URL(model.url).port)
    for (const [address, instead] of Object.entries(standIn.addresses ?? {})) stood = stood.replaceAll(address, instead)
    return stood
  }
  return {
    ...page,
    standIn,
    index: await startIndex(),
    blocks: page.blocks.map((block) => ({ ...block, text: own(block.text) })),
  }
}

describe('commands', () => {
  test.each(pages.filter((page) => commandsOf(page).length > 0 && !(page.name in ELSEWHERE)))(
    'of $name do what the page says',
    async (written) => {
      const workspace = testWorkspace()
      const page = await stageFor(written, workspace)
      for (const block of page.blocks) {
        if (FILE_NAME.test(block.info)) workspace.write(block.info, block.text)
        if (block.language !== 'sh') continue
        expect(block.info, `${page.name}:${block.line}`).toBe('')
        await runBlock(block, page, workspace)
        tally.ran += 1
      }
    },
    PAGE_TIMEOUT_MS,
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
    removeClone()
    for (const page of pages) if (page.name in ELSEWHERE) tally.elsewhere += commandsOf(page).length
    const all = pages.flatMap(commandsOf).length
    process.stdout.write(
      `docs: of ${all} blocks of commands ${tally.ran} ran here and ${tally.elsewhere} in ${Object.values(ELSEWHERE)}\n`,
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
