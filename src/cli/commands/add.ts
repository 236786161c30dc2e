/**
 * `stdio-bus add NAME -- COMMAND ...`: one more pool in the configuration file, whose comments stay.
 *
 * The pool is a command after `--`, an agent of the registry, a URL, or an agent that ships with the bus: exactly one.
 * All but a command have a name of their own, which is the pool's where none is given.
 */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { addPool, type PoolDraft, poolNames } from '../../config/pool-edit.ts'
import { DEFAULT_FILE } from '../../config/read.ts'
import { afterDashes } from '../after-dashes.ts'
import { changeConfig, nextStep, troublesOf } from '../change-config.ts'
import { UserMistake } from '../user-mistake.ts'

interface AddFlags {
  readonly config: string
  readonly registry?: string
  readonly url?: string
  readonly agent?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly instances?: number
  readonly sharing?: string
  readonly protocol?: string
}

const WAYS = 'give a command after --, --registry ID, --url URL or --agent NAME'

export function addAdd(program: Command, argv: readonly string[] = process.argv): void {
  program
    .command('add')
    .description('add a pool to the configuration; its comments stay')
    .argument('[name]', 'what clients will call it (default: the agent, or the host of the URL)')
    .argument('[command...]', 'after --: the program of its workers and its arguments')
    .option('--config <path>', 'the file to change; it is made if it is not there', DEFAULT_FILE)
    .option('--registry <id>', 'an agent of the ACP registry, such as gemini')
    .option('--url <url>', 'a server or a bus elsewhere: http(s), ws(s), tcp, tls or unix')
    .option('--agent <name>', 'an agent that ships with the bus: openai, registry or echo')
    .option(
      '--env <name[=value]>',
      'a variable; without a value it is taken from the environment of the bus',
      readVariable,
    )
    .option('--cwd <path>', 'the working directory of its workers, relative to the file')
    .option('--instances <count>', 'how many workers', readCount)
    .addOption(new Option('--sharing <mode>', 'who uses its workers').choices(['shared', 'isolated', 'lease']))
    .addOption(new Option('--protocol <name>', 'what they speak').choices(['auto', 'plain', 'acp', 'mcp']))
    .action(async (first: string | undefined, others: string[], flags: AddFlags) => {
      const command = afterDashes(argv)
      const words = first === undefined ? [] : [first, ...others]
      const [name, ...astray] = words.slice(0, words.length - command.length)
      if (astray.length > 0)
        throw new UserMistake(`put the command after --: stdio-bus add ${name} -- ${astray.concat(command).join(' ')}`)
      await add(draftOf(name ?? ownName(flags), command, flags), flags.config)
    })
}

async function add(pool: PoolDraft, file: string): Promise<void> {
  const notes = await changeConfig(file, (text) => {
    const names = poolNames(text)
    if (!names.includes(pool.id)) return addPool(text, pool)
    const advice = `choose another name, or take it out with stdio-bus remove ${pool.id}`
    throw new UserMistake(
      `${file} has a pool ${JSON.stringify(pool.id)} already (it has ${names.join(', ')}): ${advice}`,
    )
  })
  process.stdout.write(`added ${pool.id} to ${file}\n${notes.map((note) => `${note}\n`).join('')}`)
  const troubles = await troublesOf(file, [pool.id])
  process.stderr.write(troubles.text)
  process.stdout.write(await nextStep(file, troubles))
}

function ownName({ registry, agent, url }: AddFlags): string {
  const name = registry ?? agent ?? hostOf(url)
  if (name !== undefined) return name
  throw new UserMistake('the pool has no name: stdio-bus add NAME -- COMMAND ..., which clients will call it by')
}

function hostOf(url = ''): string | undefined {
  return (URL.canParse(url) && new URL(url).hostname) || undefined
}

function draftOf(id: string, [command, ...args]: readonly string[], flags: AddFlags): PoolDraft {
  const { registry, url, agent, env, cwd, instances, sharing, protocol } = flags
  const named = Object.entries({ command, registry, url, agent }).filter(([, value]) => value !== undefined)
  if (named.length === 0) throw new UserMistake(`what is ${JSON.stringify(id)} to run? ${WAYS}`)
  if (named.length > 1) {
    const found = named.map(([way]) => (way === 'command' ? 'a command' : `--${way}`)).join(' and ')
    throw new UserMistake(`${found} exclude each other: ${WAYS}`)
  }
  const others = Object.entries({ instances, sharing, protocol, cwd, env }).filter(([, value]) => value !== undefined)
  return { id, ...Object.fromEntries(named), ...(args.length === 0 ? {} : { args }), ...Object.fromEntries(others) }
}

function readVariable(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)(?:=([\s\S]*))?$/.exec(text) ?? []
  if (name === undefined)
    throw new InvalidArgumentError('Give NAME=VALUE, or NAME alone to take it from the environment of the bus.')
  return { ...before, [name]: value ?? `\${${name}}` }
}

function readCount(text: string): number {
  const count = Number(text)
  if (/^\d{1,4}$/.test(text) && count <= 1_000) return count
  throw new InvalidArgumentError('Give a whole number from 0 to 1000.')
}
