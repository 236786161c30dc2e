/**
 * The commands of the program as plain data, read from their definition: what completion and the manual are made of, so
 * that neither can tell of an option that is not there.
 */
import type { Argument, Command, Option } from 'commander'

/** What follows an option, or stands in the place of an argument. */
export type Value =
  | { readonly kind: 'file' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'text' }

export interface OptionShape {
  /** `--long`, and `-s` if there is one, as they are typed. */
  readonly names: readonly string[]
  /** As it is written for people: `-o, --output <file>`. */
  readonly flags: string
  readonly description: string
  /** Left out: it takes none. */
  readonly value?: Value
}

export interface ArgumentShape {
  readonly name: string
  readonly description: string
  readonly value: Value
}

export interface CommandShape {
  /** `[]` is the program itself, `['trace', 'ls']` a command of a command. */
  readonly path: readonly string[]
  readonly description: string
  readonly usage: string
  readonly options: readonly OptionShape[]
  readonly arguments: readonly ArgumentShape[]
  readonly commands: readonly CommandShape[]
}

const HELP: OptionShape = { names: ['-h', '--help'], flags: '-h, --help', description: 'what there is' }
const NAMES_A_FILE = /\b(file|path|dir|folder)\b/i

/** The program with all its commands; what is hidden stays so. */
export function shapeOf(program: Command, path: readonly string[] = []): CommandShape {
  const help = program.createHelp()
  const commands = help.visibleCommands(program).filter((command) => command.name() !== 'help')
  return {
    path,
    description: program.description(),
    usage: [...path, program.usage()].join(' '),
    options: [...optionsOf(program).map(optionShape), HELP],
    arguments: program.registeredArguments.map(argumentShape),
    commands: commands.map((command) => shapeOf(command, [...path, command.name()])),
  }
}

/** Its own, and those of the command that it is without one. */
function optionsOf(command: Command): readonly Option[] {
  const { _defaultCommandName: name } = command as Command & { readonly _defaultCommandName?: string | null }
  const byDefault = command.commands.find((each) => each.name() === name)
  return [...command.options, ...(byDefault?.options ?? [])].filter(({ hidden }) => !hidden)
}

/** It and everything below it. */
export function allOf(shape: CommandShape): readonly CommandShape[] {
  return [shape, ...shape.commands.flatMap(allOf)]
}

function optionShape(option: Option): OptionShape {
  const { flags, description, short, long } = option
  const names = [short, long].filter((name) => name !== undefined)
  const takesValue = option.required || option.optional
  return { names, flags, description, ...(takesValue ? { value: valueFrom(flags, option.argChoices) } : {}) }
}

function argumentShape(argument: Argument): ArgumentShape {
  const name = argument.name()
  return { name, description: argument.description, value: valueFrom(name, argument.argChoices) }
}

function valueFrom(words: string, choices: readonly string[] | undefined): Value {
  if (choices !== undefined) return { kind: 'choice', choices }
  return { kind: NAMES_A_FILE.test(words) ? 'file' : 'text' }
}
