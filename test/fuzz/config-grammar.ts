/**
 * Makes configuration files: a full one, of which parts are left out, doubled, misspelled or given another type, written
 * with comments and commas as people do, and sometimes damaged.
 */
import type { Chance } from '../simulation/chance.ts'
import { damage } from './grammar.ts'

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

const MISTAKES: readonly Json[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e12,
  '',
  'x',
  '$\x7b',
  referenceTo('SET'),
  `$${referenceTo('X')}`,
  referenceTo('UNSET'),
  [],
  {},
  [[]],
  '\u0000',
]
/** As the file spells a variable of the environment. */
function referenceTo(name: string): string {
  return `$\x7b${name}}`
}

const NAMES = ['id', 'command', 'limits', 'env', 'args', 'pool', 'pools', 'listen', 'unix', '_note', 'max_clients', 'x']

function full(secret: string): Json {
  return {
    pools: [
      {
        id: 'a',
        command: 'cat',
        args: [secret],
        instances: 2,
        sharing: 'lease',
        protocol: 'mcp',
        env: { KEY: secret },
      },
      { id: 'b', agent: 'echo', restart: 'never', limits: { max_input_buffer: 1024 }, cwd: '.', trace: true },
      { id: 'c', registry: 'some-agent', aio: { type: 'mcp', sampling: { tool: 't' } }, hang_timeout_sec: 1 },
    ],
    default_pool: 'a',
    limits: { max_clients: 10, drain_timeout_sec: 1, request_timeout_sec: 0, max_total_buffer: 1_000_000 },
    listen: { unix: ['/tmp/s', { path: '/tmp/t', pool: 'a' }], tcp: '127.0.0.1:0' },
    control: '/tmp/c',
    agents: [{ name: 'far', type: 'http', endpoint: 'http://host/', headers: { authorization: secret } }],
    aio: { store: { path: 't.db', retention_days: 1 }, remote_queries: false },
  }
}

export function drawConfig(chance: Chance, secret: string): string {
  let value = full(secret)
  for (let count = chance.int(4); count > 0; count--) value = mutate(chance, value)
  const text = write(chance, value)
  return chance.is(0.2) ? damage(chance, text) : text
}

/** Changes one place, anywhere. */
function mutate(chance: Chance, value: Json): Json {
  if (value === null || typeof value !== 'object' || chance.is(0.15)) return chance.pick(MISTAKES)
  if (Array.isArray(value)) return mutateList(chance, value)
  const entries = Object.entries(value)
  const at = chance.int(entries.length)
  const [key, item] = entries[at] ?? ['x', null]
  const roll = chance.next()
  if (roll < 0.15) return Object.fromEntries(entries.filter((_, index) => index !== at))
  if (roll < 0.3) return { ...value, [chance.pick(NAMES)]: chance.pick(MISTAKES) }
  if (roll < 0.4)
    return Object.fromEntries(entries.map(([name, one], index) => [index === at ? `${name}s` : name, one]))
  return { ...value, [key]: mutate(chance, item) }
}

function mutateList(chance: Chance, list: readonly Json[]): Json {
  const at = chance.int(list.length + 1)
  if (at === list.length) return [...list, chance.pick([...MISTAKES, ...list])]
  if (chance.is(0.2)) return list.filter((_, index) => index !== at)
  return list.map((item, index) => (index === at ? mutate(chance, item) : item))
}

function write(chance: Chance, value: Json): string {
  const text = JSON.stringify(value, null, chance.pick([0, 2]))
  const roll = chance.next()
  if (roll < 0.1) return `// a comment\n${text}\n/* the end */`
  if (roll < 0.2) return text.replace(/([}\]])$/, ',$1')
  return text
}
