/**
 * Measures what access costs (contract 9): the rows of `npm run bench` whose names begin with `access-`, and nothing else. The kept
 * result stays as it is.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const USAGE = `Usage: node bench/access.mjs [--quick] [--only NAME] [--profile] [--program FILE] [--placement NAME] [--list]

  Measures the bus with \`access\` beside the same bus without, its TLS door beside a blind pipe that speaks TLS, a signed token that
  comes again beside a token of the bus, 10,000 principals beside 10, and a good client while 5,000 connections say nothing.
  Sides take turns; only ratios count. Build first: npm run build.

  --quick           short rounds
  --only NAME       only rows whose name contains access-NAME, such as \`tools\` or \`tls\`
  --profile, --program, --placement, --list: as of npm run bench -- --help
`

const options = {
  quick: { type: 'boolean' },
  profile: { type: 'boolean' },
  list: { type: 'boolean' },
  help: { type: 'boolean' },
  only: { type: 'string', default: '' },
  program: { type: 'string' },
  placement: { type: 'string' },
}

function read() {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`)
    process.exit(2)
  }
}

const { help, only, ...rest } = read()
if (help) console.log(USAGE)
else {
  const flags = Object.entries(rest).flatMap(([name, value]) => (value === true ? [`--${name}`] : [`--${name}`, value]))
  const run = fileURLToPath(new URL('run.mjs', import.meta.url))
  const child = spawn(process.execPath, [run, '--only', `access-${only}`, ...flags], { stdio: 'inherit' })
  child.on('exit', (code) => (process.exitCode = code ?? 1))
}
