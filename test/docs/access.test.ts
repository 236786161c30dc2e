/**
 * The recipes of docs/access.md, run as they are written: its files, its commands, in their order. Only the port, the issuer
 * and the certificates are put in from outside.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { busCommand, busEnv, testWorkspace } from '../support/bus.ts'
import { Issuer, makeKey } from '../support/issuer.ts'
import { type Finished, run } from '../support/run.ts'
import { testAuthority } from '../support/tls.ts'
import type { Workspace } from '../support/workspace.ts'

const page = readFileSync(new URL('../../docs/access.md', import.meta.url), 'utf8')

interface Block {
  readonly kind: string
  /** `team`, `team serve` or `team/FILE`. */
  readonly of: string
  readonly text: string
}

const blocks: readonly Block[] = [...page.matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm)].map(([, kind, of, text]) => ({
  kind: kind!,
  of: of!,
  text: text!,
}))

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

function environment(workspace: Workspace): Record<string, string> {
  const [command, args] = busCommand()
  mkdirSync(workspace.path('bin'), { recursive: true })
  writeFileSync(workspace.path('bin/stdio-bus'), `#!/bin/sh\nexec ${[command, ...args].join(' ')} "$@"\n`, {
    mode: 0o755,
  })
  const env = busEnv(workspace)
  return { ...env, PATH: `${workspace.path('bin')}:${env['PATH']}` }
}

async function serve(text: string, workspace: Workspace): Promise<void> {
  const env = environment(workspace)
  const child: ChildProcess = spawn('sh', ['-c', `exec ${text}`], { cwd: workspace.folder, env, stdio: 'pipe' })
  onTestFinished(async () => {
    const ended = once(child, 'exit')
    if (child.exitCode === null && child.kill()) await ended
  })
  const said: string[] = []
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`it did not start:\n${said.join('\n')}`)))
    createInterface({ input: child.stderr! }).on('line', (line) => {
      said.push(line)
      if (line.includes('"ready"')) resolve()
    })
  })
}

/** Everything of one recipe; what its commands printed. */
async function follow(recipe: string, replace: (text: string) => string, workspace = testWorkspace()): Promise<string> {
  let printed = ''
  for (const { kind, of, text } of blocks) {
    const [name, file] = of.split('/')
    if (file !== undefined && name === recipe) workspace.write(file, replace(text))
    else if (kind === 'sh' && of === `${recipe} serve`) await serve(replace(text), workspace)
    else if (kind === 'sh' && of === recipe) {
      const done: Finished = await run('sh', ['-ec', replace(text)], {
        cwd: workspace.folder,
        env: environment(workspace),
        timeoutMs: 15_000,
      })
      expect(done, `${text}\n${done.stderr}`).toMatchObject({ code: 0 })
      printed += done.stdout
    }
  }
  return printed
}

const asItIs = (text: string): string => text

function answers(printed: string): object[] {
  return printed
    .split('\n')
    .filter((line) => line.startsWith('{"jsonrpc"'))
    .map((line) => JSON.parse(line))
}

test('a laptop', async () => {
  expect(answers(await follow('laptop', asItIs))).toMatchObject([{ id: 1, result: { method: 'hello' } }])
})

test('a team server', async () => {
  const port = await freePort()
  const workspace = testWorkspace()
  const printed = await follow('team', (text) => text.replaceAll('7700', String(port)), workspace)
  expect(answers(printed)).toMatchObject([{ id: 1, result: { principal: 'alice', role: 'user', via: 'token' } }])
  expect(workspace.read('audit.log')).toContain('"principal":"alice"')
  expect(workspace.read('audit.log')).not.toContain(workspace.read('alice.token').trim())
})

test('over HTTP', async () => {
  const port = await freePort()
  const workspace = testWorkspace()
  const printed = await follow('http', (text) => text.replaceAll('7800', String(port)), workspace)
  expect(printed).toContain('"principal":"carol"')
  expect(printed.endsWith('401')).toBe(true)
  expect(workspace.read('metrics.txt')).toContain('# TYPE')
  expect(workspace.read('refused.json')).toContain('unauthenticated')
})

test('a company', async () => {
  const [port, workspace, issuer, key] = [
    await freePort(),
    testWorkspace(),
    await Issuer.start(),
    await makeKey('ES256'),
  ]
  onTestFinished(() => issuer.close())
  issuer.publish(key)
  const authority = testAuthority()
  const [bus, agent] = [authority.server(), authority.client({ altNames: 'URI:spiffe://corp/agents/one' })]
  const files = { 'bus.pem': bus.cert, 'bus.key': bus.key, 'agent.pem': agent.cert, 'agent.key': agent.key }
  for (const [name, from] of Object.entries({ ...files, 'ca.pem': authority.ca, 'clients-ca.pem': authority.ca }))
    copyFileSync(from, workspace.path(name))
  for (const name of ['bus.key', 'agent.key']) chmodSync(workspace.path(name), 0o600)
  workspace.write('ann.jwt', await issuer.sign(key, { scope: 'openid bus:write' }))
  const replace = (text: string): string =>
    text.replaceAll('7700', String(port)).replaceAll('https://id.example.com', issuer.url)
  expect(answers(await follow('company', replace, workspace))).toMatchObject([
    { id: 1, result: { principal: 'agent', via: 'certificate' } },
    { id: 2, result: { principal: 'dev', subject: 'ann', via: 'jwt' } },
  ])
})

test('the life of a token', async () => {
  const workspace = testWorkspace()
  await follow('tokens', asItIs, workspace)
  expect(JSON.parse(workspace.read('stdio-bus.access.json').replace(/^\s*\/\/.*$/gm, ''))).toEqual({ principals: [] })
})

test('every command and file of the page belongs to a recipe that is tried', () => {
  const tried = ['laptop', 'team', 'http', 'company', 'tokens']
  for (const { kind, of } of blocks) if (kind !== 'nginx') expect(tried).toContain(of.split(/[/ ]/)[0])
  expect(new Set(blocks.filter(({ kind }) => kind === 'sh').map(({ of }) => of.split(' ')[0]))).toEqual(new Set(tried))
})
