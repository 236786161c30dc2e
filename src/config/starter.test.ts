import { describe, expect, it } from 'vitest'
import type { BusConfig } from './bus-config.ts'
import { parseConfig } from './read.ts'
import { type StarterOptions, writeStarter } from './starter.ts'

const ENVIRONMENT = { HOME: '/home/ada', PATH: '/bin', API_KEY: 'k', OPENAI_API_KEY: 'k', MY_KEY: 'mine' }

function configOf(text: string): BusConfig {
  const reading = parseConfig('stdio-bus.json', text, { environment: ENVIRONMENT, cwd: '/srv' })
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems, null, 1))
  return reading.config
}

/** Takes the slashes off every line that is an option, and leaves the prose. */
function uncomment(text: string): string {
  return text.replace(/^(\s*)\/\/ {1,3}(?=[{}"\]])/gm, '$1')
}

const VARIANTS: [name: string, options: StarterOptions][] = [
  ['echo', { schema: './s.json' }],
  ['the demo', { schema: './s.json', agent: 'demo' }],
  ['what is exported', { schema: './s.json', agent: 'exported' }],
  ['an endpoint', { schema: './s.json', agent: { baseUrl: 'http://127.0.0.1:11434/v1', model: 'llama3.2' } }],
]

describe('the starter', () => {
  it('8.1 works as it is, with lines of 32 MiB', () => {
    const { bus, launches } = configOf(writeStarter({ schema: './s.json' }))
    expect(bus.pools.map(({ id }) => id)).toEqual(['echo'])
    expect(bus.defaultPool).toBe('echo')
    expect(bus.limits.maxInputBufferBytes).toBe(32 * 1024 * 1024)
    expect(launches.get('echo')).toMatchObject({ agent: 'echo' })
  })

  it('names an endpoint and its key without writing the key', () => {
    const text = writeStarter({
      schema: 's',
      agent: { baseUrl: 'http://127.0.0.1:4000/v1', model: 'm', envKey: 'MY_KEY' },
    })
    expect(text).not.toContain('mine')
    expect(configOf(text).launches.get('chat')).toMatchObject({
      agent: 'openai',
      args: [],
      env: { OPENAI_BASE_URL: 'http://127.0.0.1:4000/v1', OPENAI_MODEL: 'm', OPENAI_API_KEY: 'mine' },
    })
  })

  it('sends the key of another to no endpoint', () => {
    const agent = { baseUrl: 'http://127.0.0.1:11434/v1', model: 'm' }
    const chat = configOf(writeStarter({ schema: 's', agent })).launches.get('chat')
    expect(chat).toMatchObject({ env: { OPENAI_API_KEY: '' } })
  })

  it('without an endpoint the agent runs its demo', () => {
    expect(configOf(writeStarter({ schema: 's', agent: 'demo' })).launches.get('chat')).toMatchObject({
      agent: 'openai',
      args: ['--demo'],
    })
  })

  it('a strange model name changes nothing but itself', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the strange name is the point
    const model = '"\n}] // ${HOME} /* \\ $${X}'
    const { launches } = configOf(writeStarter({ schema: 's', agent: { baseUrl: 'http://h/v1', model } }))
    expect(launches.get('chat')).toMatchObject({ env: { OPENAI_MODEL: model } })
  })

  it.each(VARIANTS)('every option of %s that is commented out is right when uncommented', (_name, options) => {
    const text = writeStarter(options)
    const all = uncomment(text)
    const { bus, listen, aio, registry } = configOf(all)
    expect(all).not.toBe(text)
    expect(bus.pools.map(({ id }) => id)).toContain('coder')
    expect(bus.pools.find(({ id }) => id === 'coder')).toMatchObject({ instances: 2, trace: true })
    expect(listen).toMatchObject({ unix: [{ path: '/srv/stdio-bus.sock' }], tcp: [{ port: 7400 }] })
    expect(aio.enabled).toBe(true)
    expect(registry.credentialsFile).toBe('/srv/credentials.json')
  })
})
