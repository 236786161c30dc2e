/** The manual page, from the same data as completion: every command with its options, and what holds for all of them. */
import { allOf, type CommandShape } from './shape.ts'

const SECTIONS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    'EXIT STATUS',
    [
      ['0', 'A clean end.'],
      ['1', 'Something in the world failed: a file, a socket, a bus that cannot be reached.'],
      ['2', 'A mistake in the arguments or in the configuration; starting again would not mend it.'],
    ],
  ],
  [
    'ENVIRONMENT',
    [
      ['STDIO_BUS_TOKEN', 'What this client proves itself with. Nothing that is started inherits it.'],
      ['NO_COLOR', 'Colours are left out.'],
    ],
  ],
  [
    'FILES',
    [
      ['./stdio-bus.json', 'The configuration, unless another is named. JSON with comments.'],
      ['~/.stdio-bus/', "Control sockets and records of this user's buses, traces, installed agents."],
    ],
  ],
]

export function manualPage(program: CommandShape, version: string): string {
  const runnable = allOf(program).filter(({ path, commands }) => path.length > 0 && commands.length === 0)
  return [
    `.TH STDIO\\-BUS 1 "" ${quoted(`stdio-bus ${version}`)} "User Commands"`,
    '.SH NAME',
    'stdio\\-bus \\- run pools of stdio workers and route every line between them and many clients',
    '.SH SYNOPSIS',
    '.B stdio\\-bus',
    '[\\fICOMMAND\\fR] [\\fIOPTION\\fR]...',
    '.SH DESCRIPTION',
    text(program.description),
    'Without a command it is',
    '.BR serve .',
    '.SH COMMANDS',
    ...runnable.flatMap(describeCommand),
    ...SECTIONS.flatMap(([name, rows]) => [`.SH ${name}`, ...rows.flatMap(([term, meaning]) => row(term, meaning))]),
    '',
  ].join('\n')
}

function describeCommand({ usage, description, options, arguments: args }: CommandShape): string[] {
  return [
    `.SS ${quoted(`stdio-bus ${usage}`)}`,
    text(sentence(description)),
    ...args.filter((each) => each.description !== '').flatMap((each) => row(each.name, each.description)),
    ...options.filter(({ names }) => !names.includes('--help')).flatMap((each) => row(each.flags, each.description)),
  ]
}

function row(term: string, meaning: string): string[] {
  return ['.TP', `.B ${text(term)}`, text(sentence(meaning))]
}

function sentence(words: string): string {
  const first = words.slice(0, 1).toUpperCase()
  return `${first}${words.slice(1)}${/[.?!]$/.test(words) ? '' : '.'}`
}

function quoted(words: string): string {
  return `"${text(words).replaceAll('"', '\\(dq')}"`
}

/** Text that the formatter takes as it is: a hyphen that can be copied, no escape, and no request at its beginning. */
function text(words: string): string {
  const escaped = words.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('\n', ' ')
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped
}
