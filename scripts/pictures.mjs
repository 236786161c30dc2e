/**
 * Makes the pictures of README anew: runs the commands on a pseudo-terminal, against a bus with an agent that says the same
 * every time, and draws what they wrote as SVG into docs/pictures; a browser takes those of the console.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { takeConsole } from './pictures/console.mjs'
import { drawScreen } from './pictures/draw.mjs'
import { readScreen } from './pictures/screen.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const program = `${root}dist/cli/main.js`
const pictures = `${root}docs/pictures`
const COLUMNS = 92
const SHOWN_FOLDER = '/srv/bus'
const PATIENCE_MS = 15_000
const BUSY_SECONDS = 40

const folder = mkdtempSync(join(tmpdir(), 'pictures-'))
const env = { PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8', TERM: 'xterm-256color', SHELL: '/bin/sh' }
const agent = { command: process.execPath, args: [`${root}scripts/pictures/agent.mjs`] }
const config = {
  pools: [
    { id: 'coder', ...agent, instances: 2, trace: true, sessions: { keep_sec: 3_600 } },
    { id: 'echo', agent: 'echo' },
  ],
  default_pool: 'coder',
  listen: { unix: 'bus.sock', http: '127.0.0.1:0' },
  aio: { store: { path: 'traces.db' } },
}
const mistakes = `{
  "pools": [
    { "id": "coder", "agent": "openia", "instances": "two" },
    { "id": "files", "command": "node", "sharing": "leased" }
  ],
  "default_pool": "codr"
}
`

function run(...args) {
  const options = { cwd: folder, env, encoding: 'utf8' }
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], options)
  if (status !== 0) throw new Error(`stdio-bus ${args.join(' ')} failed:\n${stderr}`)
  return stdout.trim()
}

/** Runs a command on a terminal; `keys` are typed one after the other, each once what it waits for is on the screen. */
async function capture(args, keys = []) {
  const words = [process.execPath, program, ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qefc', `stty cols ${COLUMNS} rows 60; ${words}`, '/dev/null'], { cwd: folder, env })
  let written = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => (written += chunk))
  const ended = new Promise((resolve) => child.once('close', resolve))
  for (const { when, type } of keys) {
    const until = Date.now() + PATIENCE_MS
    while (!written.includes(when)) {
      if (Date.now() > until) throw new Error(`${when} did not come:\n${written}`)
      await sleep(25)
    }
    child.stdin.write(type)
  }
  if (keys.length === 0) child.stdin.end()
  await ended
  return written.replaceAll(folder, SHOWN_FOLDER)
}

/** Something to see in the charts: more is asked for a while, and less again. */
async function beBusy() {
  const child = spawn(process.execPath, [program, 'connect', '--pool', 'echo'], { cwd: folder, env })
  child.stdout.resume()
  const ended = new Promise((resolve) => child.once('close', resolve))
  for (let second = 0, id = 0; second < BUSY_SECONDS; second++) {
    const count = Math.ceil(40 * Math.sin((Math.PI * (second + 1)) / (BUSY_SECONDS + 1)))
    for (let more = 0; more < count; more++) child.stdin.write(`{"id":${++id},"method":"hello"}\n`)
    await sleep(1_000)
  }
  child.stdin.end()
  await ended
}

function draw(name, command, written) {
  const prompt = command === undefined ? '' : `\x1b[2m$\x1b[22m ${command}\r\n`
  const rows = readScreen(prompt + written, COLUMNS)
  writeFileSync(`${pictures}/${name}.svg`, drawScreen(rows, { columns: COLUMNS, title: command ?? 'stdio-bus chat' }))
  process.stdout.write(`docs/pictures/${name}.svg\n`)
}

mkdirSync(pictures, { recursive: true })
writeFileSync(join(folder, 'stdio-bus.json'), JSON.stringify(config))
writeFileSync(join(folder, 'wrong.json'), mistakes)
try {
  run('start')
  const question = 'Why do retries take so long?'
  const chat = await capture(
    ['chat', '--pool', 'coder'],
    [
      { when: '❯', type: `${question}\r` },
      { when: 'pass.', type: '\x04' },
    ],
  )
  draw('chat', 'stdio-bus chat --pool coder', chat)
  draw('status', 'stdio-bus status', await capture(['status']))
  draw('trace', 'stdio-bus trace show last', await capture(['trace', 'show', 'last']))
  draw('check', 'stdio-bus check --config wrong.json', await capture(['check', '--config', 'wrong.json']))
  await beBusy()
  await takeConsole(
    () => run('console', '--no-open'),
    (name, picture) => {
      writeFileSync(`${pictures}/${name}.png`, picture)
      process.stdout.write(`docs/pictures/${name}.png\n`)
    },
    [folder, SHOWN_FOLDER],
  )
  run('stop')
  const pipeline = spawnSync(process.execPath, [`${root}examples/aio-model/run.mjs`, `${pictures}/pipeline.svg`])
  if (pipeline.status !== 0) throw new Error(`the pipeline failed:\n${pipeline.stderr}`)
  process.stdout.write('docs/pictures/pipeline.svg\n')
} finally {
  rmSync(folder, { recursive: true, force: true })
}
