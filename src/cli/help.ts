/** The help of the whole program: its commands by what they are for, the flags of the default one, and what to type. */
import type { Command } from 'commander'

/** Each command stands under the first heading that names it. */
const GROUPS: readonly { readonly heading: string; readonly commands: readonly string[] }[] = [
  {
    heading: 'Run it:',
    commands: ['serve', 'start', 'stop', 'restart', 'reload', 'ls', 'status', 'logs', 'console'],
  },
  { heading: 'Configure it:', commands: ['init', 'check', 'add', 'import', 'remove', 'registry', 'token', 'cluster'] },
  { heading: 'Talk to it:', commands: ['chat', 'connect', 'sessions', 'attach'] },
  { heading: 'Look at it afterwards:', commands: ['trace', 'replay'] },
]
const OTHERS = 'More:'

/** What to type, and what it is for. */
const EXAMPLES: readonly (readonly [command: string, about: string])[] = [
  ['stdio-bus init && stdio-bus start', 'a bus in the background, with an echo'],
  ['stdio-bus chat "hello"', 'asks it'],
  ['OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=llama3.2 stdio-bus chat', ''],
  ['stdio-bus add files -- npx -y @modelcontextprotocol/server-filesystem .', ''],
  ['stdio-bus import .mcp.json', 'the servers of an MCP host'],
  ['stdio-bus connect --pool files', 'what an editor is given as a command'],
  ['stdio-bus status --watch', 'workers, clients, sessions'],
  ['stdio-bus --tcp 127.0.0.1:7400', 'a bus in this terminal'],
]

/** All commands have been added. */
export function arrangeHelp(program: Command): void {
  for (const command of program.commands) {
    const group = GROUPS.find(({ commands }) => commands.includes(command.name()))
    command.helpGroup(group?.heading ?? OTHERS)
  }
  program
    .configureHelp({ ...program.configureHelp(), subcommandTerm: (command) => command.name() })
    .addHelpCommand(
      program
        .createCommand('help')
        .argument('[command]')
        .helpOption(false)
        .description('what a command does')
        .helpGroup(OTHERS),
    )
    .addHelpText('after', ({ command }) => (command === program ? `${flagsOfServe(program)}${examples()}` : ''))
}

function flagsOfServe(program: Command): string {
  const serve = program.commands.find((command) => command.name() === 'serve')!
  const helper = program.createHelp()
  helper.prepareContext({ helpWidth: helpWidth() })
  const flags = helper.visibleOptions(serve).filter(({ long }) => long !== '--help')
  const width = Math.max(...flags.map((flag) => helper.optionTerm(flag).length))
  const rows = flags.map((flag) =>
    helper.formatItem(helper.optionTerm(flag), width, helper.optionDescription(flag), helper),
  )
  return ['', 'Flags of serve, the default command:', ...rows, ''].join('\n')
}

/** Beside each other where there is room; a command is never broken, since it is to be pasted. */
function examples(): string {
  const width = Math.max(...EXAMPLES.map(([command, about]) => (about === '' ? 0 : command.length)))
  const rows = EXAMPLES.map(([command, about]) => `  ${command.padEnd(about === '' ? 0 : width)}    ${about}`.trimEnd())
  const fit = EXAMPLES.every(([, about], index) => about === '' || rows[index]!.length <= helpWidth())
  const stacked = EXAMPLES.map(([command, about]) => (about === '' ? `  ${command}` : `  ${command}\n      ${about}`))
  return ['', 'Examples:', ...(fit ? rows : stacked), ''].join('\n')
}

function helpWidth(): number {
  return process.stdout.columns ?? HELP_WIDTH
}

const HELP_WIDTH = 80
