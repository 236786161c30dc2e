/** Completion for bash, 3.2 and newer: one function that finds the command on the line, then what may stand there. */
import { allOf, type CommandShape, type Value } from './shape.ts'

export function bashCompletion(program: CommandShape): string {
  const all = allOf(program)
  const known = all.filter(({ path }) => path.length > 0).map(({ path }) => quote(placeOf(path)))
  return `# stdio-bus completion bash: load it with  source <(stdio-bus completion bash)
_stdio_bus_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$1")
}

_stdio_bus() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command='' index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$command \${COMP_WORDS[index]}" in
      ${known.join(' | ')}) command="\${command:+$command }\${COMP_WORDS[index]}" ;;
    esac
  done
  case "$command $previous" in
${all.flatMap(valueRows).join('\n')}
  esac
  case "$command" in
${all.map(wordRow).join('\n')}
  esac
}
complete -F _stdio_bus stdio-bus
`
}

/** A command behind the one before it, as the function joins them. */
function placeOf(path: readonly string[]): string {
  return `${path.slice(0, -1).join(' ')} ${path.at(-1)}`
}

function valueRows({ path, options }: CommandShape): string[] {
  return options.flatMap(({ names, value }) =>
    value === undefined
      ? []
      : `    ${names.map((name) => quote(`${path.join(' ')} ${name}`)).join(' | ')}) ${fill(value)}; return ;;`,
  )
}

function wordRow(shape: CommandShape): string {
  const { path, options, commands } = shape
  const words = [...commands.map((command) => command.path.at(-1)!), ...choicesOf(shape)]
  const flags = options.flatMap(({ names }) => names)
  const files = shape.arguments.some(({ value }) => value.kind === 'file') ? '; _stdio_bus_files "$word"' : ''
  const listed = quote([...words, ...flags].join(' '))
  return `    ${quote(path.join(' '))}) COMPREPLY=($(compgen -W ${listed} -- "$word"))${files} ;;`
}

function choicesOf(shape: CommandShape): readonly string[] {
  return shape.arguments.flatMap(({ value }) => (value.kind === 'choice' ? value.choices : []))
}

function fill(value: Value): string {
  if (value.kind === 'file') return '_stdio_bus_files "$word"'
  if (value.kind === 'text') return ':'
  return `COMPREPLY=($(compgen -W ${quote(value.choices.join(' '))} -- "$word"))`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
