/** Completion for fish: a line per command and option, each with the commands behind which it may stand. */
import { allOf, type CommandShape, type OptionShape } from './shape.ts'

export function fishCompletion(program: CommandShape): string {
  const lines = allOf(program).flatMap((shape) => {
    const where = conditionFor(shape)
    return [
      ...shape.commands.map(({ path, description }) => line(where, `-f -a ${quote(path.at(-1)!)}`, description)),
      ...shape.options.map((option) => line(where, flagsOf(option), option.description)),
      ...shape.arguments.flatMap(({ value, description }) =>
        value.kind === 'choice' ? line(where, `-f -a ${quote(value.choices.join(' '))}`, description) : [],
      ),
    ]
  })
  return `# stdio-bus completion fish: load it with  stdio-bus completion fish | source
${lines.join('\n')}
`
}

function line(where: string, what: string, description: string): string {
  return `complete -c stdio-bus -n ${quote(where)} ${what} -d ${quote(description)}`
}

/** The commands that lead here have been typed, and none that leads on. */
function conditionFor({ path, commands }: CommandShape): string {
  const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`)
  const below = commands.map((command) => command.path.at(-1)).join(' ')
  return [...seen, ...(below === '' ? [] : [`not __fish_seen_subcommand_from ${below}`])].join('; and ')
}

function flagsOf({ names, value }: OptionShape): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  if (value === undefined) return `-f ${flags.join(' ')}`
  if (value.kind === 'file') return `-r -F ${flags.join(' ')}`
  return `-x ${flags.join(' ')}${value.kind === 'choice' ? ` -a ${quote(value.choices.join(' '))}` : ''}`
}

function quote(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`
}
