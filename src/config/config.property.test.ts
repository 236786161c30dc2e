import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseConfig } from './read.ts'
import { formatProblems, formatProblemsJson } from './report.ts'

const OPTIONS = { environment: { HOME: '/home/ada', SET: 'value' }, cwd: '/srv' }

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Entries = { [key: string]: Json }

/** A file with every key there is: any subset of the optional ones must be accepted. */
const COMMON_AGENT = { method_style: 'bare', modalities: ['text'], timeout_ms: 1, max_payload_bytes: 1 }
const POOL_LIMITS = {
  max_input_buffer: 1,
  max_output_queue: 0,
  max_restarts: 0,
  restart_window_sec: 0,
  request_timeout_sec: 1,
}
const LIMITS = {
  ...POOL_LIMITS,
  ...{ drain_timeout_sec: 0, backpressure_timeout_sec: 1, max_clients: 1, max_sessions_per_client: 1 },
  ...{ max_pending_per_client: 1, max_total_buffer: 1, blocking_timeout_sec: 1, half_close_timeout_sec: 1 },
}
const POOL_OPTIONS = {
  ...{ args: ['x', ''], instances: 2, max_instances: 2, sharing: 'lease', balance: 'connection' },
  ...{ protocol: 'mcp', era: 'modern', fallback: 'b' },
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the file spells its references so
  ...{ env: { A: '${SET}' }, inherit_env: true, cwd: '.', pipes: 'fifo' },
  ...{ restart: 'never', start_timeout_sec: 1, hang_timeout_sec: 1 },
  ...{ limits: POOL_LIMITS, trace: true, aio: { type: 'mcp', sampling: { tool: 't' }, ...COMMON_AGENT } },
}
const RIGHTS = {
  ...{ pools: ['a*'], tools: { allow: ['read_*'], deny: ['*_secret'] }, rate: '50/s' },
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the file spells its references so
  ...{ max_pending: 1, max_connections: 1, env: { A: '${SET}', b: { C: 'd' } } },
}
const TOP_OPTIONS = {
  default_pool: 'a',
  limits: LIMITS,
  listen: {
    unix: ['/s', { path: '/t', pool: 'a' }],
    tcp: '127.0.0.1:0',
    tls: [{ address: 'h:0', pool: 'a', cert: 'c', key: 'k', client_ca: 'a', client_cert: 'optional' }],
  },
  access: {
    file: 'a.json',
    anonymous: RIGHTS,
    audit: { file: 'audit.log', required: true },
    oauth: {
      ...{ issuer: 'https://h', audience: ['x'], jwks_url: 'http://127.0.0.1:1/k' },
      map: [{ claim: 'scope', equals: 'w', as: 'dev' }],
    },
    certificates: [{ subject: 'CN=x', as: 'dev' }],
  },
  control: '/c',
  agents: [{ name: 'far', type: 'sse', endpoint: 'http://h/', headers: { k: 'v' }, ...COMMON_AGENT }],
  aio: {
    store: { path: 't.db', retention_days: 1, payload_bytes: 0, redact: [] },
    otlp: { endpoint: 'http://h/v1/traces', headers: {}, payloads: true, compat: true },
    remote_queries: true,
  },
  registry: { index: 'i', cache: 'c', ttl_sec: 0, agents: 'a', credentials: 'k', idle_timeout_sec: 0 },
}
const FULL: Entries = {
  pools: [
    { id: 'a', command: 'cat', ...POOL_OPTIONS },
    { id: 'b', command: 'cat' },
  ],
  ...TOP_OPTIONS,
}

/** Keys without which the object around them is wrong. */
const REQUIRED = new Set([
  ...['pools', 'id', 'command', 'tool', 'name', 'endpoint', 'path'],
  ...['file', 'issuer', 'audience', 'map', 'claim', 'equals', 'as', 'subject', 'address', 'cert', 'key', 'client_ca'],
])

/** Some of the keys of `value`, at every level, and always the required ones. */
function subsetOf(value: Json): fc.Arbitrary<Json> {
  if (Array.isArray(value)) return fc.tuple(...value.map(subsetOf)).map((items) => [...items])
  if (value === null || typeof value !== 'object') return fc.constant(value)
  const keys = Object.keys(value)
  const parts = Object.fromEntries(keys.map((key) => [key, subsetOf(value[key]!)]))
  return fc.record(parts, { requiredKeys: keys.filter((key) => REQUIRED.has(key)) }) as fc.Arbitrary<Json>
}

const comment = fc.tuple(
  fc.string().map((text) => `_${text}`),
  fc.jsonValue() as fc.Arbitrary<Json>,
)

/** Every place in the full file, as the object or list it is in and its key there. */
function placesIn(value: Json, path: (string | number)[] = []): (string | number)[][] {
  if (value === null || typeof value !== 'object') return [path]
  const keys = Array.isArray(value) ? value.map((_, index) => index) : Object.keys(value)
  return [path, ...keys.flatMap((key) => placesIn((value as Entries)[key]!, [...path, key]))]
}

function withValueAt(value: Json, path: readonly (string | number)[], put: Json): Json {
  const [step, ...rest] = path
  if (step === undefined) return put
  const copy: Json = Array.isArray(value) ? [...value] : { ...(value as Entries) }
  ;(copy as Entries)[step] = withValueAt((value as Entries)[step]!, rest, put)
  return copy
}

const judge = (text: string) => parseConfig('bus.json', text, OPTIONS)

describe('any file', () => {
  it('the full file is right', () => {
    expect(judge(JSON.stringify(FULL))).toMatchObject({ ok: true })
  })

  it('with any subset of the valid keys, and comments, is accepted', () => {
    // What one key demands of another is not a subset's fault.
    const isCoherent = (file: Json) => {
      const { aio, protocol } = ((file as Entries)['pools'] as Entries[])[0]!
      const { sampling, type } = (aio ?? {}) as Entries
      return sampling === undefined || type === 'mcp' || protocol === 'mcp'
    }
    fc.assert(
      fc.property(subsetOf(FULL).filter(isCoherent), comment, (file, [key, note]) => {
        const reading = judge(JSON.stringify({ ...(file as Entries), [key]: note, $schema: 'x' }))
        expect(reading.ok ? [] : reading.problems).toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  it('with a value of a wrong kind anywhere is refused at that place', () => {
    const place = fc.constantFrom(...placesIn(FULL).filter((path) => path.length > 0))
    fc.assert(
      // No key takes a fraction or null.
      fc.property(place, fc.constantFrom<Json>(0.5, null), (path, wrong) => {
        const reading = judge(JSON.stringify(withValueAt(FULL, path, wrong)))
        const shown = path
          .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
          .join('')
          .slice(1)
        expect(reading.ok ? [] : reading.problems.map((problem) => problem.path)).toContain(shown)
      }),
      { numRuns: 300 },
    )
  })

  it('with an unknown key anywhere is refused at that place', () => {
    const isObject = (path: readonly (string | number)[]) => {
      const found = path.reduce<Json>((value, step) => (value as Entries)[step]!, FULL)
      return (
        found !== null &&
        typeof found === 'object' &&
        !Array.isArray(found) &&
        !path.slice(-2).some((step) => step === 'env' || step === 'headers')
      )
    }
    const place = fc.constantFrom(...placesIn(FULL).filter(isObject))
    fc.assert(
      fc.property(place, fc.constantFrom('zebra', 'constructor', 'hasOwnProperty', ''), (path, key) => {
        const reading = judge(JSON.stringify(withValueAt(FULL, [...path, key], 1)))
        const found = reading.ok ? [] : reading.problems.map((problem) => problem.found)
        expect(found).toContain(`the unknown key ${JSON.stringify(key)}`)
      }),
    )
  })

  it('cut, spliced or scribbled over never throws, and every problem has a place and words', () => {
    const text = JSON.stringify(FULL, null, 1)
    const cut = fc.tuple(fc.nat(text.length), fc.nat(20), fc.string({ unit: 'binary', maxLength: 8 }))
    fc.assert(
      fc.property(cut, ([from, length, put]) => {
        const mutant = text.slice(0, from) + put + text.slice(from + length)
        const reading = judge(mutant)
        if (reading.ok) return
        expect(reading.problems.length).toBeGreaterThan(0)
        const lines = mutant.split('\n').length
        for (const { line, column, found, allowed } of reading.problems) {
          expect(line).toBeLessThanOrEqual(lines)
          expect(line === 0 ? 1 : column).toBeGreaterThan(0)
          expect(found && allowed).not.toBe('')
        }
        expect(JSON.parse(formatProblemsJson('bus.json', reading.problems, []))).toMatchObject({ ok: false })
      }),
      { numRuns: 500 },
    )
  })

  it('of any JSON, or any text, never throws, and nothing a terminal acts on is shown', () => {
    const anything = fc.oneof(
      fc.json({ maxDepth: 8 }),
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(...'{}[]",:/* \n1e') }),
    )
    fc.assert(
      fc.property(anything, (text) => {
        const reading = judge(text)
        expect(reading.ok).toBe(false)
        if (!reading.ok)
          expect(formatProblems(reading.problems)).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
      }),
      { numRuns: 500 },
    )
  })
})
