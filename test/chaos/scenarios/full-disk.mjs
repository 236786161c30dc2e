/** A full disk for the trace store: nobody's request waits for it or fails for it, and the log says what is wrong. */
import { spawnSync } from 'node:child_process'
import { pool } from '../stage/stage.mjs'
import { eventually, sleep } from '../stage/waiting.mjs'

const DISK_KIB = 512
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'chaos', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const CONFIG = {
  pools: [pool('traced', { instances: 2, protocol: 'mcp', era: 'modern', trace: true })],
  aio: { store: { path: 'disk/traces.db' } },
}
const traced = () => ({
  pool: 'traced',
  method: 'tools/call',
  params: { name: 'tool', _meta: META, arguments: { text: 'z'.repeat(8_000) } },
})

export const fullDisk = {
  name: 'full-disk',
  title: `a full disk for the trace store (${DISK_KIB} KiB)`,
  async run(stage) {
    if (spawnSync('unshare', ['--map-root-user', '--mount', 'true']).status !== 0)
      return stage.fact('not run: this machine lets nobody mount a small disk')
    const bus = await stage.start(CONFIG, { diskKib: DISK_KIB })
    const before = await bus.descriptorsAtRest()
    const players = await stage.players(bus, 8, () => traced)
    const said = await eventually(() => complaint(bus), 10_000, 250)
    const answeredBefore = stage.ledger.answered
    await sleep(stage.isQuick ? 1_000 : 4_000)
    stage.check(said !== undefined, 'the log does not say that traces cannot be kept')
    stage.check(stage.ledger.answered > answeredBefore + 200, 'requests are held up once the disk is full')
    await stage.settle(players)
    stage.check(stage.ledger.errorCount === 0, `errors: ${JSON.stringify(stage.ledger.errors)}`)
    stage.fact(`${stage.ledger.answered - answeredBefore} requests answered after the log said: ${said?.split(':')[0]}`)
    await stage.checkDescriptors(bus, before)
    await stage.finish(bus)
  },
}

/** What the log says of traces, once it warns of them. */
function complaint(bus) {
  const lines = bus
    .log()
    .split('\n')
    .filter((line) => /"level":"(warn|error)".*trace/i.test(line))
  return lines.length === 0 ? undefined : JSON.parse(lines[0]).msg
}
