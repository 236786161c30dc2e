import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Launch } from '../../config/bus-config.ts'
import { readConfig } from '../../config/read.ts'
import { addInit, init } from './init.ts'

let folder = ''
let servers: Server[] = []
const at = (name: string) => join(folder, name)

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stdio-bus-init-'))
})
afterEach(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers = []
  await rm(folder, { recursive: true, force: true })
})

/** A model server on a port of its own, as one of the candidates. */
async function serve(name: string, listener: RequestListener, keyVariable?: string) {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { name, port, ...(keyVariable === undefined ? {} : { keyVariable }) }
}

const models =
  (...ids: string[]): RequestListener =>
  (request, response) => {
    response.writeHead(request.url === '/v1/models' ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ object: 'list', data: ids.map((id) => ({ id })) }))
  }

const locked =
  (key: string, id: string): RequestListener =>
  (request, response) => {
    if (request.headers.authorization === `Bearer ${key}`) return models(id)(request, response)
    response.writeHead(401).end('{}')
  }

async function launchOf(file: string, environment: NodeJS.ProcessEnv = {}): Promise<Launch | undefined> {
  const reading = await readConfig(file, { environment })
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
  return [...reading.config.launches.values()][0]
}

describe('stdio-bus init', () => {
  it('writes a file that is right, for its owner alone, with a schema that exists', async () => {
    const { code, text } = await init({ config: at('bus.json') })
    expect({ code, text }).toMatchObject({ code: 0, text: expect.stringContaining('stdio-bus start --config') })
    expect(await launchOf(at('bus.json'))).toMatchObject({ agent: 'echo' })
    expect((await stat(at('bus.json'))).mode & 0o777).toBe(0o600)
    const schema = /"\$schema": "(file:[^"]+)"/.exec(await readFile(at('bus.json'), 'utf8'))?.[1]
    expect(JSON.parse(await readFile(new URL(schema!), 'utf8'))).toHaveProperty('title', 'stdio Bus')
  })

  it('8.4 refuses to overwrite, exit 2, unless forced', async () => {
    await writeFile(at('bus.json'), 'mine')
    expect(await init({ config: at('bus.json') })).toMatchObject({ code: 2, text: expect.stringContaining('--force') })
    expect(await readFile(at('bus.json'), 'utf8')).toBe('mine')
    expect(await init({ config: at('bus.json'), force: true })).toMatchObject({ code: 0 })
    expect(await launchOf(at('bus.json'))).toMatchObject({ agent: 'echo' })
  })

  it('a symbolic link to nowhere counts as existing', async () => {
    await symlink(at('target.json'), at('bus.json'))
    expect(await init({ config: at('bus.json') })).toMatchObject({ code: 2 })
    await expect(stat(at('target.json'))).rejects.toThrow()
  })

  it('a directory that does not exist, and an agent that does not, are mistakes of the user', async () => {
    expect(await init({ config: at('gone/bus.json') })).toMatchObject({
      code: 2,
      text: expect.stringContaining('gone'),
    })
    expect(await init({ config: at('bus.json'), agent: 'nobody' })).toMatchObject({
      code: 2,
      text: expect.stringContaining('nobody'),
    })
  })

  it('is a command with its options', async () => {
    const program = new Command().exitOverride()
    addInit(program)
    await program.parseAsync(['node', 'stdio-bus', 'init', '--config', at('bus.json'), '--agent', 'echo'])
    expect(await launchOf(at('bus.json'))).toMatchObject({ agent: 'echo' })
    expect(process.exitCode).toBe(0)
    process.exitCode = undefined
  })
})

describe('stdio-bus init --agent openai', () => {
  const openai = async (candidates: Awaited<ReturnType<typeof serve>>[], environment: NodeJS.ProcessEnv = {}) => {
    const outcome = await init({ config: at('bus.json'), agent: 'openai', candidates, environment })
    return { ...outcome, launch: await launchOf(at('bus.json'), environment) }
  }

  it('uses the first server that is there, with the first model it lists', async () => {
    const dead = { name: 'Nobody', port: 1 }
    const candidates = [dead, await serve('Two', models('second', 'third')), await serve('Three', models('other'))]
    const { code, text, launch } = await openai(candidates)
    expect(code).toBe(0)
    expect(text).toContain('Found Two')
    expect(launch).toMatchObject({
      agent: 'openai',
      args: [],
      env: { OPENAI_BASE_URL: `http://127.0.0.1:${candidates[1]?.port}/v1`, OPENAI_MODEL: 'second' },
    })
    expect(launch).toMatchObject({ env: { OPENAI_API_KEY: '' } })
  })

  it('a model that only makes embeddings is passed over', async () => {
    const { launch } = await openai([await serve('One', models('nomic-embed-text', 'llama3.2'))])
    expect(launch).toMatchObject({ env: { OPENAI_MODEL: 'llama3.2' } })
  })

  it('what is exported wins over what is found, and is named in no file', async () => {
    const environment = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'mine', OPENAI_API_KEY: 'sk-mine' }
    const { text, launch } = await openai([await serve('One', models('first'))], environment)
    expect(text).toContain('takes OPENAI_BASE_URL')
    expect(launch).toMatchObject({ agent: 'openai', args: [], env: {} })
    expect(await readFile(at('bus.json'), 'utf8')).not.toMatch(/sk-mine|127\.0\.0\.1:1/)
  })

  it('without any server the agent runs its demo', async () => {
    const { code, text, launch } = await openai([{ name: 'Nobody', port: 1 }])
    expect(code).toBe(0)
    expect(text).toContain('--demo')
    expect(launch).toMatchObject({ agent: 'openai', args: ['--demo'] })
  })

  it('a server without a model is named, and not used', async () => {
    const { text, launch } = await openai([
      await serve('Empty', models()),
      await serve('Null', (_request, response) => response.end('{"object":"list","data":null}')),
    ])
    expect(text).toMatch(/Empty at .* has no model.*\nNull at .* has no model/)
    expect(launch).toMatchObject({ args: ['--demo'] })
  })

  it('a server that wants a key gets its own, by reference, and no other', async () => {
    const seen: (string | undefined)[] = []
    const strange = await serve('Strange', (request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(401).end()
    })
    const lite = await serve('Lite', locked('k1', 'gpt'), 'LITE_KEY')
    const environment = { LITE_KEY: 'k1', OPENAI_API_KEY: 'not for you' }
    const { text, launch } = await openai([strange, lite], environment)
    expect(text).toContain('Strange at')
    expect(seen).toEqual([undefined])
    expect(launch).toMatchObject({ env: { OPENAI_MODEL: 'gpt', OPENAI_API_KEY: 'k1' } })
    expect(await readFile(at('bus.json'), 'utf8')).not.toContain('k1"')
  })

  it('a server that hangs, floods or lies is as good as none, soon', async () => {
    const started = performance.now()
    const { launch } = await openai([
      await serve('Silent', () => {}),
      await serve('Endless', (_request, response) => {
        const flood = () => {
          if (!response.destroyed && response.write('x'.repeat(65_536)) !== undefined) setImmediate(flood)
        }
        flood()
      }),
      await serve('Web', (_request, response) => response.end('<html>')),
      await serve('Odd', (_request, response) => response.end('{"data":[null,{"id":5}]}')),
    ])
    expect(launch).toMatchObject({ args: ['--demo'] })
    expect(performance.now() - started).toBeLessThan(5_000)
  })
})
