/**
 * `stdio-bus init`: writes a commented configuration that works as it is. It never overwrites unless told to.
 */
import { lstat, writeFile } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { CANDIDATES, type Candidate, type Detection, detectEndpoints } from '../../config/local-endpoints.ts'
import { DEFAULT_FILE } from '../../config/read.ts'
import { type StarterOptions, writeStarter } from '../../config/starter.ts'
import { whyUnwritable } from '../../host/why-unwritable.ts'
import { programName } from '../program-name.ts'

export interface InitOptions {
  readonly config?: string | undefined
  readonly force?: boolean | undefined
  readonly agent?: string | undefined
  readonly environment?: NodeJS.ProcessEnv
  readonly candidates?: readonly Candidate[]
}

/** What a run of the command comes to: its exit code and what it says, on stdout when all went well. */
export interface Outcome {
  readonly code: 0 | 1 | 2
  readonly text: string
}

const SCHEMA_FILE = fileURLToPath(new URL('../../../schema/stdio-bus.schema.json', import.meta.url))

export function addInit(program: Command): void {
  program
    .command('init')
    .description('write a commented configuration that works as it is')
    .option('--config <path>', 'the file to write', DEFAULT_FILE)
    .option('--force', 'replace the file if it exists')
    .option(
      '--agent <name>',
      'the agent of its pool: echo, or openai with OPENAI_BASE_URL or a model server found on this machine',
      'echo',
    )
    .action(async (_options, command: Command) => {
      const { code, text } = await init(command.optsWithGlobals())
      const stream = code === 0 ? process.stdout : process.stderr
      stream.write(text)
      process.exitCode = code
    })
}

export async function init(options: InitOptions): Promise<Outcome> {
  const { config = DEFAULT_FILE, force = false, agent = 'echo' } = options
  if (agent !== 'echo' && agent !== 'openai') {
    return { code: 2, text: `stdio-bus init: no agent ${JSON.stringify(agent)}: use --agent echo or --agent openai.\n` }
  }
  const file = resolve(config)
  if (!force && (await exists(file))) return refuseToOverwrite(config)

  const { said, ...chosen } = agent === 'echo' ? { said: '' } : await chooseEndpoint(options)
  const text = writeStarter({ schema: schemaFor(file), ...chosen })
  return write(file, { text, force, config, said })
}

interface Choice extends Pick<StarterOptions, 'agent'> {
  readonly said: string
}

/** What the user has exported wins over what is found. */
async function chooseEndpoint({ environment = process.env, candidates }: InitOptions): Promise<Choice> {
  if (environment['OPENAI_BASE_URL']) return { agent: 'exported', said: EXPORTED }
  const detections = await detectEndpoints(environment, candidates)
  const agent = detections.find(({ endpoint }) => endpoint !== undefined)?.endpoint ?? 'demo'
  return { agent, said: describe(detections, candidates) }
}

const EXPORTED = 'The agent takes OPENAI_BASE_URL and its like from the environment of the bus, where they are set.\n'

const WAYS_OUT = { model: 'has no model yet: pull one', key: 'wants a key' } as const

function describe(detections: readonly Detection[], candidates: readonly Candidate[] = CANDIDATES): string {
  const used = detections.find(({ endpoint }) => endpoint !== undefined)
  const lacking = detections.filter(({ lack }) => lack !== undefined)
  const notes = lacking.map(({ name, baseUrl, lack }) => `${name} at ${baseUrl} ${WAYS_OUT[lack!]}.\n`).join('')
  if (used === undefined) {
    const names = candidates.map(({ name }) => name).join(', ')
    return `${notes}No usable model server found on this machine (looked for ${names}): the agent runs with --demo.\n`
  }
  return `${notes}Found ${used.name} at ${used.baseUrl}; using the model ${JSON.stringify(used.endpoint?.model)}.\n`
}

interface Draft {
  readonly text: string
  readonly force: boolean
  readonly config: string
  readonly said: string
}

async function write(file: string, { text, force, config, said }: Draft): Promise<Outcome> {
  try {
    // `wx` refuses what came into being since we looked, symbolic links included.
    await writeFile(file, text, { flag: force ? 'w' : 'wx', mode: 0o600 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return refuseToOverwrite(config)
    const isMistake = code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR'
    return {
      code: isMistake ? 2 : 1,
      text: `stdio-bus init: cannot write ${config}: ${whyUnwritable(error)}; name another file with --config\n`,
    }
  }
  const flag = config === DEFAULT_FILE ? '' : ` --config ${config}`
  const program = programName()
  const next = `Next:\n  ${program} start${flag}\n  ${program} chat${flag} "hello"\n`
  return { code: 0, text: `Wrote ${config}.\n${said}${next}` }
}

function refuseToOverwrite(config: string): Outcome {
  return {
    code: 2,
    text: `stdio-bus init: ${config} exists already. Use --force to replace it, or --config to write another.\n`,
  }
}

/** Relative where the package lies beneath the file, so that a project may move; else where it is installed. */
function schemaFor(file: string): string {
  const way = relative(dirname(file), SCHEMA_FILE)
  return way.startsWith('..') || resolve(way) === way ? pathToFileURL(SCHEMA_FILE).href : `./${way}`
}

async function exists(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT' && error.code !== 'ENOTDIR',
  )
}
