/**
 * What the big interop runs share: a temporary folder with packages from the npm registry, a Node that is new enough for them, and a bus
 * with a pool of server-everything, one of the deterministic ACP agent, and aggregates of public MCP servers.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { SERVERS } from './aggregate.mjs'
import { binOf } from './inspector.mjs'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const MAIN = process.env.STDIO_BUS_MAIN ?? join(ROOT, 'dist/cli/main.js')
const PACKAGES = [
  'node@22',
  '@modelcontextprotocol/inspector@2.12.0',
  'acpx@0.19.1',
  '@anthropic-ai/claude-code@2.1.197',
  '@google/gemini-cli@0.61.0',
  '@qwen-code/qwen-code@0.15.10',
  'opencode-ai@1.18.33',
  '@modelcontextprotocol/server-filesystem@2026.8.31',
  '@modelcontextprotocol/server-memory@2026.8.31',
  '@modelcontextprotocol/server-sequential-thinking@2026.8.31',
]

/** Runs a program to its end; it has a minute unless said otherwise. */
export async function run(command, args, { cwd, env, timeoutMs = 60_000 }) {
  const child = spawn(command, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  })
  const ended = new Promise((resolve, reject) => child.once('error', reject).once('close', (code) => resolve(code)))
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { stdout, stderr, code }
}

async function install(folder) {
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  // The package of Node fetches its program by a script; `npm run` hands on that this repository runs none.
  const args = ['install', '--ignore-scripts=false', '--no-audit', '--no-fund', '--loglevel=error', ...PACKAGES]
  const { code, stderr } = await run('npm', args, { cwd: folder, env: process.env, timeoutMs: 600_000 })
  if (code !== 0) throw new Error(`npm could not install ${PACKAGES.join(', ')}:\n${stderr}`)
}

/** The same servers as one, with all their tools and with a search. */
function aggregates(folder) {
  const node = process.execPath
  const installed = Object.entries(SERVERS).filter(([, { name }]) => name !== undefined)
  const servers = installed.map(([id, { name }]) => {
    const args = [join(folder, 'node_modules', binOf(folder, name)), ...(id === 'files' ? [folder] : [])]
    return { id, command: node, args, env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } }
  })
  const members = Object.keys(SERVERS)
  return [
    ...servers,
    { id: 'all', members, list_wait_ms: 20_000 },
    { id: 'find', members, mode: 'search', list_wait_ms: 20_000 },
  ]
}

async function startBus(folder) {
  const node = process.execPath
  const pools = [
    {
      id: 'everything',
      command: node,
      args: [join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')],
    },
    { id: 'agent', command: node, args: [join(ROOT, 'test/fixtures/acp/agent.mjs')] },
    ...aggregates(folder),
  ]
  writeFileSync(join(folder, 'note.txt'), 'a note for the aggregate')
  writeFileSync(join(folder, 'bus.json'), JSON.stringify({ pools }))
  const socket = join(folder, 'bus.sock')
  const doors = ['--unix', socket, '--http', '127.0.0.1:0', '--control', join(folder, 'control.sock')]
  const args = [MAIN, '--config', join(folder, 'bus.json'), ...doors]
  const child = spawn(node, args, { cwd: folder, env: environment(folder), stdio: ['ignore', 'ignore', 'pipe'] })
  const http = await new Promise((resolve, reject) => {
    let log = ''
    child.stderr.on('data', (chunk) => {
      log += chunk
      if (log.includes('"msg":"ready"')) resolve(/"(http:\/\/[^"]+)"/.exec(log)[1])
    })
    child.once('exit', (code) => reject(new Error(`the bus ended with ${code}:\n${log}`)))
  })
  const stop = () => new Promise((resolve) => child.once('exit', resolve) && child.kill())
  return { socket, http, stop }
}

/** A HOME of its own: what the programs keep is removed with the folder. */
const environment = (folder) => ({ PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8', CI: '1' })

export async function openStage() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sb-interop-')))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    await install(folder)
    const { socket, http, stop } = await startBus(folder)
    return {
      folder,
      /** The command line a host is given for a pool. */
      connectTo: (pool) => [process.execPath, MAIN, 'connect', '--unix', socket, '--pool', pool],
      /** Where the pool of server-everything is for whoever speaks HTTP. */
      url: `${http}/mcp/everything`,
      /** Runs the program of an installed package, on the newer Node unless it needs none. */
      runPackage: (bin, args) => {
        const program = join(folder, 'node_modules', bin)
        const [command, ...more] = bin.endsWith('.exe') ? [program] : [join(folder, 'node_modules/.bin/node'), program]
        return run(command, [...more, ...args], { cwd: folder, env: environment(folder) })
      },
      /** Runs a program that brings all it needs; it finds the newer Node first. */
      runProgram: (name, args) => {
        const bins = join(folder, 'node_modules/.bin')
        const env = { ...environment(folder), PATH: `${bins}:${process.env.PATH}` }
        return run(join(bins, name), args, { cwd: folder, env, timeoutMs: 120_000 })
      },
      close: async () => {
        await stop()
        remove()
      },
    }
  } catch (error) {
    remove()
    throw error
  }
}
