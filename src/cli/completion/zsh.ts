/** Completion for zsh: a function per command, each with the arguments that it takes. */
import { type ArgumentShape, allOf, type CommandShape, type OptionShape, type Value } from './shape.ts'

export function zshCompletion(program: CommandShape): string {
  return `#compdef stdio-bus
# stdio-bus completion zsh: write it to a file named _stdio-bus in a folder of $fpath, or source it.
${allOf(program).map(functionOf).join('\n')}
if [ "$funcstack[1]" = _stdio-bus ]; then _stdio_bus "$@"; else compdef _stdio_bus stdio-bus; fi
`
}

const nameOf = (path: readonly string[]): string => ['_stdio_bus', ...path].join('_').replaceAll('-', '_')

function functionOf({ path, options, commands, arguments: args }: CommandShape): string {
  const flags = options.flatMap(flagSpecs)
  if (commands.length === 0) {
    const specs = [...flags, ...args.map(argumentSpec)]
    return `${nameOf(path)}() {\n  _arguments -s \\\n    ${specs.join(' \\\n    ')}\n}`
  }
  const described = commands.map(({ path: below, description }) => quote(`${below.at(-1)}:${description}`))
  const cases = commands.map(({ path: below }) => `        ${below.at(-1)}) ${nameOf(below)} ;;`)
  return `${nameOf(path)}() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \\
    ${[...flags, "'1: :->command'", "'*:: :->rest'"].join(' \\\n    ')}
  case $state in
    command)
      local -a commands=(${described.join(' ')})
      _describe command commands
      ;;
    rest)
      case $line[1] in
${cases.join('\n')}
      esac
      ;;
  esac
}`
}

function flagSpecs({ names, description, value }: OptionShape): string[] {
  const others = names.length > 1 ? `(${names.join(' ')})` : ''
  const action = value === undefined ? '' : `:value:${actionOf(value)}`
  return names.map((name) => quote(`${others}${name}[${escaped(description)}]${action}`))
}

function argumentSpec({ name, value }: ArgumentShape): string {
  return quote(`*:${escaped(name)}:${actionOf(value)}`)
}

function actionOf(value: Value): string {
  if (value.kind === 'file') return '_files'
  return value.kind === 'text' ? ' ' : `(${value.choices.join(' ')})`
}

function escaped(text: string): string {
  return text.replaceAll(/[\\[\]:]/g, '\\$&')
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
