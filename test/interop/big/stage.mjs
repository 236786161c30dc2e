/**
 * What the big interop runs share: a temporary folder with packages from the npm registry, a Node that is new enough for them, and a bus
 * with a pool of server-everything and a pool of the deterministic ACP agent.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const MAIN = process.env.STDIO_BUS_MAIN ?? join(ROOT, 'dist/cli/main.js')
const PACKAGES = ['node@22', '@modelcontextprotocol/inspector@2.12.0', 'acpx@0.19.1']

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

async function startBus(folder) {
  const node = process.execPath
  const pools = [
    {
      id: 'everything',
      command: node,
      args: [join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')],
    },
    { id: 'agent', command: node, args: [join(ROOT, 'test/fixtures/acp/agent.mjs')] },
  ]
  writeFileSync(join(folder, 'bus.json'), JSON.stringify({ pools }))
  const socket = join(folder, 'bus.sock')
  const args = [MAIN, '--config', join(folder, 'bus.json'), '--unix', socket, '--control', join(folder, 'control.sock')]
  const child = spawn(node, args, { cwd: folder, env: environment(folder), stdio: ['ignore', 'ignore', 'pipe'] })
  await new Promise((resolve, reject) => {
    let log = ''
    child.stderr.on('data', (chunk) => String((log += chunk)).includes('"msg":"ready"') && resolve())
    child.once('exit', (code) => reject(new Error(`the bus ended with ${code}:\n${log}`)))
  })
  const stop = () => new Promise((resolve) => child.once('exit', resolve) && child.kill())
  return { socket, stop }
}

/** A HOME of its own: what the programs keep is removed with the folder. */
const environment = (folder) => ({ PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8', CI: '1' })

export async function openStage() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sb-interop-')))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    await install(folder)
    const { socket, stop } = await startBus(folder)
    return {
      folder,
      /** The command line a host is given for a pool. */
      connectTo: (pool) => [process.execPath, MAIN, 'connect', '--unix', socket, '--pool', pool],
      /** Runs the program of an installed package on the newer Node. */
      runPackage: (bin, args) =>
        run(join(folder, 'node_modules/.bin/node'), [join(folder, 'node_modules', bin), ...args], {
          cwd: folder,
          env: environment(folder),
        }),
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
