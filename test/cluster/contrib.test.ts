/** The example in contrib/cluster works as it stands, but for the places where things lie (contract 14.9). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { freePort, startNats, withNats } from '../support/nats.ts'
import { eventually } from '../support/waiting.ts'
import { untilReachable } from './nodes.ts'

const FOLDER = fileURLToPath(new URL('../../contrib/cluster/', import.meta.url))
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8')
const PASSWORDS = { FRONT_PASSWORD: 'one', WORKER_PASSWORD: 'other' }

withNats(1, () => {
  test('with its server and its permissions a client at the front reaches the workers', async () => {
    verifies('14.9-permissions', '14.2-reach')
    const port = await freePort()
    let config = read('nats.conf')
      .replace(/^port:.*$/m, '')
      .replace(/^jetstream.*$/m, '')
    for (const [name, password] of Object.entries(PASSWORDS)) config = config.replaceAll(`$${name}`, `"${password}"`)
    await startNats({ port, config, jetStream: true })
    const start = (name: string) => {
      const { listen: _listen, ...file } = JSON.parse(read(name).replace('@nats:4222', `@127.0.0.1:${port}`))
      return startBus({ config: file, env: PASSWORDS })
    }
    const [front, worker] = await Promise.all([start('front.json'), start('worker.json')])
    await untilReachable(front, 'echo')
    await eventually('the directory', async () => {
      const { stdout } = await front.run(['status', '--cluster', '--json', '--control', front.control])
      return JSON.parse(stdout).nats.directory === true
    })
    expect(front.log.text + worker.log.text).not.toMatch(/ermissions|violation/)
  })
})

test('the compose file names what is there', () => {
  const { services, volumes, networks } = parse(read('compose.yaml'), { strict: true, merge: true })
  expect(Object.keys(services)).toEqual(['front', 'worker', 'nats'])
  for (const service of Object.values<{ volumes: string[]; networks: string[] }>(services)) {
    for (const network of service.networks) expect(networks).toHaveProperty(network)
    for (const volume of service.volumes) {
      const [from] = volume.split(':')
      if (from!.startsWith('./')) expect(read(from!)).not.toBe('')
      else expect(volumes).toHaveProperty(from!)
    }
  }
})
