import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { Problem } from '../../config/problem.ts'
import { check } from './check.ts'

let folder: string
const at = (name: string): string => join(folder, name)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'access-check-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const POOLS = [
  { id: 'coder', command: '/bin/sh' },
  { id: 'own', command: '/bin/sh', sharing: 'isolated' },
  { id: 'chat', agent: 'openai' },
]
const AGENTS = [{ name: 'far', endpoint: 'http://127.0.0.1:1/' }]

interface Said {
  readonly code: number
  readonly problems: string[]
}

/** What `check` says; `principals` are those of the access file, if there is one. */
async function said(access: object, principals?: readonly object[], top: object = {}): Promise<Said> {
  writeFileSync(at('bus.json'), JSON.stringify({ pools: POOLS, agents: AGENTS, access, ...top }), { mode: 0o600 })
  if (principals !== undefined) writeFileSync(at('access.json'), JSON.stringify({ principals }), { mode: 0o600 })
  const { code, text } = await check({ config: at('bus.json'), json: true, environment: { KEY: 'k' } })
  const problems = (JSON.parse(text).problems as Problem[]).map(
    ({ file, severity, path, found }) => `${file.slice(folder.length + 1)} ${severity} ${path} ${found}`,
  )
  return { code, problems }
}

const FILE = { file: 'access.json' }

it('9.27 nothing is said against access that is right', async () => {
  const alice = {
    name: 'alice',
    pools: ['c*', 'far'],
    tools: { allow: ['x', 'cod?r::*'] },
    env: { K: 'v', chat: { A: 'b' } },
  }
  expect(await said({ ...FILE, anonymous: { pools: ['*'], env: { own: { K: 'v' } } } }, [alice])).toEqual({
    code: 0,
    problems: [],
  })
})

it('9.27 an access file that is missing, open to others or wrong is exit 2', async () => {
  verifies('9.27-access-file')
  expect(await said(FILE)).toEqual({ code: 2, problems: ['access.json error  no such file'] })
  expect(await said(FILE, [{ name: 'a' }])).toEqual({
    code: 2,
    problems: ['access.json error principals[0].pools nothing'],
  })
  chmodSync(at('access.json'), 0o640)
  expect(await said(FILE)).toEqual({
    code: 2,
    problems: ['access.json error  a file that others may use (mode 0640)'],
  })
})

it('9.27 an `as` that names nobody is exit 2', async () => {
  verifies('9.27-as')
  const map = [
    { claim: 'scope', equals: 'w', as: 'dev' },
    { claim: 'scope', equals: 'r', as: 'divv' },
  ]
  const certificates = [{ subject: 'CN=x', as: 'nobody' }]
  const access = { ...FILE, oauth: { issuer: 'https://h', audience: 'x', map }, certificates }
  const { code, problems } = await said(access, [{ name: 'dev', pools: ['*'] }])
  expect(code).toBe(2)
  expect(problems.filter((problem) => problem.includes('error'))).toEqual([
    'bus.json error access.oauth.map[1].as "divv", which is nobody\'s name',
    'bus.json error access.certificates[0].as "nobody", which is nobody\'s name',
  ])
})

it('9.27 patterns without use are told', async () => {
  verifies('9.27-without-use')
  const anonymous = { pools: ['coder', 'Coder'] }
  const alice = { name: 'alice', pools: ['web*', 'far'], tools: { allow: ['web::x', 'chat::*'], deny: ['gi?::*'] } }
  expect(await said({ ...FILE, anonymous }, [{ name: 'bob', pools: [] }, alice])).toEqual({
    code: 0,
    problems: [
      'bus.json warning access.anonymous.pools[1] "Coder", which matches no pool and no agent',
      'access.json warning principals[1].pools[0] "web*", which matches no pool and no agent',
      'access.json warning principals[1].tools.allow[0] "web::x", which matches no pool and no agent',
      'access.json warning principals[1].tools.deny[0] "gi?::*", which matches no pool and no agent',
    ],
  })
})

it('9.27 variables and certificates without use are told, and no value', async () => {
  verifies('9.27-without-use')
  const principals = [
    { name: 'a', pools: ['coder'], env: { KEY: 'hunter2' } },
    { name: 'b', pools: ['own'], env: { KEY: 'hunter2', chat: { KEY: 'hunter2' }, coder: { KEY: 'hunter2' } } },
  ]
  const { code, problems } = await said({ ...FILE, certificates: [{ subject: 'CN=x', as: 'a' }] }, principals)
  expect(code).toBe(0)
  expect(problems).toEqual([
    'bus.json warning access.certificates rows for certificates, which no door asks for',
    'access.json warning principals[0].env.KEY a variable that no worker gets',
    'access.json warning principals[1].env.chat variables that no worker gets',
    'access.json warning principals[1].env.coder variables that no worker gets',
  ])
  expect(problems.join()).not.toContain('hunter2')
})

it('9.27 tokens in plain on a door that others reach are told, and an audit open to them', async () => {
  verifies('9.27-plain-tokens')
  const alice = [{ name: 'alice', pools: ['*'] }]
  const listen = { tcp: ['127.0.0.1:0', '0.0.0.0:7400'] }
  writeFileSync(at('audit.log'), '', { mode: 0o644 })
  const { code, problems } = await said({ ...FILE, audit: 'audit.log' }, alice, { listen })
  expect(code).toBe(0)
  expect(problems).toEqual([
    'bus.json warning access.audit a file that others may use',
    'bus.json warning listen.tcp[1] "0.0.0.0", which other machines may reach',
  ])
  const { text } = await check({ config: at('bus.json'), environment: {} })
  expect(text).toContain('tokens travel in plain here')
})
