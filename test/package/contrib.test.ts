/**
 * What is in contrib/ for those who run it: units, container, compose file and the entry for the ACP registry. There is no
 * container engine here, so their files are read, and what they would run is run.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { builtinAgents } from '../../src/registry/builtin.ts'
import { agentEntry } from '../../src/registry/entry.ts'
import { launch, testWorkspace } from '../support/bus.ts'
import { MANIFEST, ROOT } from './shipped.ts'

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

describe('systemd', () => {
  test.skipIf(!hasSystemd).each([
    ['stdio-bus.service', 'stdio-bus.service', []],
    ['stdio-bus.user.service', 'stdio-bus.service', ['--user']],
  ])('%s is a unit that systemd takes', (file, name, flags) => {
    const folder = mkdtempSync(join(tmpdir(), 'sb-unit-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    copyFileSync(join(ROOT, 'contrib/systemd', file), join(folder, name))
    const env = { PATH: process.env['PATH'], HOME: folder, XDG_RUNTIME_DIR: folder }
    const verified = spawnSync('systemd-analyze', [...flags, 'verify', join(folder, name)], { env, encoding: 'utf8' })
    expect([verified.status, verified.stderr]).toEqual([0, ''])
  })

  test.skipIf(!hasSystemd)('the service of the system is well fenced in', () => {
    const unit = join(ROOT, 'contrib/systemd/stdio-bus.service')
    const flags = ['security', '--offline=true', '--threshold=25', '--no-pager']
    expect(spawnSync('systemd-analyze', [...flags, unit], { encoding: 'utf8' }).status).toBe(0)
  })
})

/** The instructions of a Containerfile, lines joined. */
function instructionsOf(text: string): readonly (readonly [string, string])[] {
  const joined = text.replaceAll(/\\\n/g, ' ')
  return joined.split('\n').flatMap((line) => {
    const [, name, rest] = /^([A-Z]+) +(.*)$/.exec(line) ?? []
    return name === undefined ? [] : [[name, rest!.trim()] as const]
  })
}

describe('the container', () => {
  const text = read('Containerfile')
  const instructions = instructionsOf(text)
  const all = (name: string): string[] => instructions.filter(([each]) => each === name).map(([, rest]) => rest)

  test('every line is an instruction or a comment, and the last stage is its own', () => {
    const known = [
      'FROM',
      'WORKDIR',
      'COPY',
      'RUN',
      'USER',
      'ENV',
      'VOLUME',
      'STOPSIGNAL',
      'HEALTHCHECK',
      'ENTRYPOINT',
      'CMD',
    ]
    expect(instructions.filter(([name]) => !known.includes(name))).toEqual([])
    expect(
      text
        .replaceAll(/\\\n/g, ' ')
        .split('\n')
        .filter((line) => !/^(#|$|[A-Z]+ )/.test(line)),
    ).toEqual([])
    expect(all('FROM')).toHaveLength(2)
    expect(all('FROM')[0]).toMatch(/ AS build$/)
    expect(all('FROM')[1]).not.toMatch(/build/)
  })

  test('it does not run as root, and runs no script of a dependency', () => {
    expect(all('USER').at(-1)).toBe('stdio-bus')
    const order = instructions.map(([name]) => name)
    expect(order.lastIndexOf('USER')).toBeGreaterThan(order.lastIndexOf('RUN'))
    const installs = all('RUN').filter((command) => /npm (ci|install|pack)/.test(command))
    expect(installs.filter((command) => !command.includes('--ignore-scripts'))).toEqual([])
  })

  test('what it copies is there and is not left out of the context', () => {
    const sources = all('COPY')
      .filter((each) => !each.startsWith('--from'))
      .flatMap((each) => each.split(' ').slice(0, -1))
    expect(sources.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
    const ignored = read('.containerignore').split('\n')
    expect(sources.filter((path) => ignored.includes(path))).toEqual([])
    expect(read('.dockerignore')).toBe(read('.containerignore'))
  })

  test('its command starts a bus with its configuration, and its health check tells whether that lives', async () => {
    const workspace = testWorkspace()
    const inside = (words: string): string => words.replaceAll('/run/stdio-bus', workspace.folder)
    const file = workspace.write('stdio-bus.json', inside(read('contrib/container/stdio-bus.json')))
    const [serve, flag, path] = JSON.parse(all('CMD')[0]!)
    expect([serve, flag, basename(path)]).toEqual(['serve', '--config', basename(file)])
    const control = workspace.path('control.sock')
    const bus = await launch({ doors: [], args: ['--config', file, '--control', control] }, workspace)
    expect(await (await bus.connect()).ask({ id: 1, method: 'hello' })).toHaveProperty('result')
    const [program, ...check] = JSON.parse(inside(/CMD (\[.*\])/.exec(all('HEALTHCHECK')[0]!)![1]!))
    expect(program).toBe('stdio-bus')
    expect((await bus.run(check)).code).toBe(0)
    await bus.stop()
    expect((await bus.run(check)).code).toBe(1)
  })
})

describe('the compose file', () => {
  const FOLDER = join(ROOT, 'contrib/container')
  const { services, volumes, networks } = parse(read('contrib/container/compose.yaml'), { strict: true })

  test('builds from the Containerfile and mounts what is there', () => {
    const { build, volumes: mounts } = services.bus
    expect(resolve(FOLDER, build.context, build.dockerfile)).toBe(join(ROOT, 'Containerfile'))
    for (const mount of [...mounts, ...services.nats.volumes].map((each: string) => each.split(':')[0]!)) {
      if (mount.startsWith('.')) expect(existsSync(join(FOLDER, mount)), mount).toBe(true)
      else expect(volumes, mount).toHaveProperty(mount)
    }
  })

  test('both are fenced in, publish nothing, and share a network', () => {
    for (const service of [services.bus, services.nats]) {
      expect(service.ports).toBeUndefined()
      expect(service.cap_drop).toEqual(['ALL'])
      expect(service.security_opt).toEqual(['no-new-privileges:true'])
      expect(networks).toHaveProperty(service.networks[0])
    }
    expect(services.bus).toMatchObject({ read_only: true, stop_grace_period: '45s' })
    expect(services.nats.healthcheck.test).toContain('http://127.0.0.1:8222/healthz')
  })

  test('the folder of its sockets belongs to the user of the image', () => {
    const [, uid] = /--uid (\d+)/.exec(read('Containerfile'))!
    expect(services.bus.tmpfs).toContain(`/run/stdio-bus:uid=${uid},gid=${uid},mode=0700`)
  })
})

describe('the entry for the ACP registry', () => {
  const entry = JSON.parse(read('contrib/registry/openai-agent/agent.json'))

  test('is one, of this version, and the same as the one that is built in', () => {
    const { icon, ...described } = entry
    const parsed = agentEntry.parse(described)
    const { license, ...rest } = parsed
    expect(rest).toEqual(builtinAgents().find(({ id }) => id === 'openai-agent'))
    expect(entry.version).toBe(MANIFEST.version)
    expect(license).toBe(MANIFEST.license)
    expect(MANIFEST.bin).toHaveProperty(parsed.distribution.npx!.cmd!)
    expect(icon).toBe('icon.svg')
  })

  test('its icon is what the registry takes: 16 by 16, in the colour of the text', () => {
    const icon = read('contrib/registry/openai-agent/icon.svg')
    expect(icon).toMatch(/width="16" height="16" viewBox="0 0 16 16"/)
    expect([...icon.matchAll(/(?:fill|stroke)="([^"]+)"/g)].map(([, colour]) => colour)).toEqual([
      'none',
      'currentColor',
    ])
  })
})
