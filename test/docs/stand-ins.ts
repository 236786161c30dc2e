/**
 * What commands of the documentation need beyond a folder and the program, made on this machine: a clone with everything
 * installed, a package to upgrade to, a far bus with TLS and tokens.
 *
 * The clone holds one test, so that its `npm test` ends: this one would otherwise run itself. What is installed there is
 * what is installed here, and nothing there may install anew: that would take it away from here.
 */
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EVERYTHING, initializeLine } from '../interop/mcp-peers.ts'
import { npm, outsideEnvironment, sourceFiles } from '../package/scratch.ts'
import { ROOT } from '../package/shipped.ts'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { testAuthority } from '../support/tls.ts'
import type { Workspace } from '../support/workspace.ts'

export interface StandIn {
  readonly env?: Readonly<Record<string, string>>
  /** Where commands of npm are run. */
  readonly tree?: string
  /** Addresses of the page, and what is there instead. */
  readonly addresses?: Readonly<Record<string, string>>
  /** The commands are given to hosts: each is asked this, and must answer. */
  readonly asked?: string
}

/** By page. */
export const STAND_INS: Readonly<Record<string, (workspace: Workspace) => Promise<StandIn>>> = {
  'README.md': async () => ({ tree: installedClone() }),
  'docs/getting-started.md': async () => ({ tree: installedClone() }),
  'docs/upgrade.md': packageToInstall,
  'docs/clients.md': busWithCoder,
  'docs/api.md': farBus,
  'docs/remote.md': async (workspace) => ({ ...(await farBus(workspace)), asked: JSON.stringify(initializeLine(1)) }),
}

/** The one test of the clone. */
const ONLY_TEST = 'src/wire/columns.test.ts'
const LONG_AGO = new Date(0)
let made: string | undefined

function installedClone(): string {
  if (made !== undefined) return made
  // npm empties what a link to a link leads to.
  if (lstatSync(join(ROOT, 'node_modules')).isSymbolicLink())
    throw new Error('node_modules is a link here: install it in this folder first (npm ci)')
  made = realpathSync(mkdtempSync(join(tmpdir(), 'sb-clone-')))
  const files = sourceFiles().filter((name) => name === ONLY_TEST || !name.endsWith('.test.ts'))
  for (const name of [...files, 'dist']) cpSync(join(ROOT, name), join(made, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(made, 'node_modules'))
  utimesSync(join(made, 'package-lock.json'), LONG_AGO, LONG_AGO)
  writeFileSync(join(made, 'dist/.built'), '')
  return made
}

export function removeClone(): void {
  if (made !== undefined) rmSync(made, { recursive: true, force: true })
}

async function packageToInstall(workspace: Workspace): Promise<StandIn> {
  const tree = installedClone()
  const [{ filename }] = JSON.parse(npm(tree, ['pack', '--json']))
  cpSync(join(tree, filename), workspace.path('stdio-bus-NEW.tgz'))
  return { tree: workspace.folder }
}

/** What npm puts into the system goes here. */
export function npmEnvironment(workspace: Workspace): Record<string, string> {
  const prefix = workspace.path('prefix')
  mkdirSync(prefix, { recursive: true })
  return { ...outsideEnvironment(), npm_config_prefix: prefix, npm_config_prefer_offline: 'true' }
}

async function busWithCoder(workspace: Workspace): Promise<StandIn> {
  const pools = [{ id: 'coder', agent: 'openai', args: ['--demo'] }]
  await startBus({ config: { pools }, workspace, defaultControl: true })
  return {}
}

/** A bus of another user behind TLS, with a token for us, and one that asks nobody. */
async function farBus(workspace: Workspace): Promise<StandIn> {
  const far = testWorkspace()
  const pools = [{ id: 'tools', command: process.execPath, args: [EVERYTHING], protocol: 'mcp', sharing: 'isolated' }]
  const access = { file: far.path('access.json') }
  far.writeOwn('bus.json', { pools, access })
  const token = await runBus(
    ['token', 'add', 'us', '--pools', '*', '--role', 'admin', '--config', far.path('bus.json')],
    { workspace: far },
  )
  const { cert, key } = testAuthority().server()
  const bus = await startBus({
    config: { pools, access, listen: { http: { address: '127.0.0.1:0', cert, key } } },
    doors: [],
    workspace: far,
  })
  const open = await startBus({ config: { pools }, doors: ['http'] })
  mkdirSync(join(workspace.home, '.config'))
  writeFileSync(join(workspace.home, '.config/bus-token'), token.stdout)
  chmodSync(join(workspace.home, '.config/bus-token'), 0o600)
  const { ca } = testAuthority()
  return {
    env: { TOKEN: token.stdout.trim(), CURL_CA_BUNDLE: ca, NODE_EXTRA_CA_CERTS: ca },
    addresses: {
      'https://bus.example.com': bus.url().replace('127.0.0.1', 'localhost'),
      'http://127.0.0.1:3001': open.url(),
    },
  }
}
