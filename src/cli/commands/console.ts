/** `stdio-bus console`: a link by which the console of a running bus is opened in a browser, once (contract 15.2). */
import { spawn } from 'node:child_process'
import { type Command, Option } from 'commander'
import { askControl, type ControlOptions } from '../../console/control-client.ts'

interface ConsoleOptions extends ControlOptions {
  readonly role: string
  readonly open: boolean
}

const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', linux: 'xdg-open' }

export function addConsole(program: Command): void {
  program
    .command('console')
    .description('print a link to the console of a running bus, good once, and open it in a browser')
    .option('--control <path>', 'its control socket (default: the only running bus)')
    .option('--unix <path>', 'or a Unix socket it listens on')
    .addOption(
      new Option('--role <role>', 'what whoever logs in by it may do').choices(['admin', 'observer']).default('admin'),
    )
    .option('--no-open', 'only print it')
    .action(async (options: ConsoleOptions) => {
      const { url } = (await askControl(options, 'console', { role: options.role })) as { url: string }
      process.stdout.write(`${url}\n`)
      if (options.open && process.stdout.isTTY) openBrowser(url)
    })
}

/** Where there is none the link has been printed. */
function openBrowser(url: string): void {
  const opener = OPENERS[process.platform]
  if (opener === undefined) return
  const child = spawn(opener, [url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}
