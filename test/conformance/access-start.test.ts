/** Clause 9.9 at the start of a bus: an access file that is missing, open to others or mistaken is exit 2. */
import { chmodSync } from 'node:fs'
import { expect, test } from 'vitest'
import { runBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { verifies } from './verifies.ts'

const FILE = 'access.json'
const ALICE = { name: 'alice', pools: ['*'] }

/** What a bus with this access, and these principals in its file, says when it is started. */
async function start(access: object, principals?: readonly object[], mode = 0o600) {
  const workspace = testWorkspace()
  const bus = workspace.write('bus.json', { ...config(pool('echo')), access })
  if (principals !== undefined) {
    workspace.write(FILE, { principals })
    chmodSync(workspace.path(FILE), mode)
  }
  return runBus(['--config', bus], { workspace })
}

test('9.9 a missing file is exit 2 and names token add', async () => {
  verifies('9.9-start')
  expect(await start({ file: FILE })).toMatchObject({ code: 2, stderr: expect.stringContaining('token add NAME') })
})

test('9.9 a file that others may read is exit 2 and names chmod', async () => {
  verifies('9.9-start')
  const done = await start({ file: FILE }, [ALICE], 0o640)
  expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('chmod 600') })
})

test('9.9 mistakes come together, with file, line and path', async () => {
  verifies('9.9-start')
  const { code, stderr } = await start({ file: FILE }, [{ name: 'local', pools: [], role: 'root' }, { nam: 'a' }])
  expect(code).toBe(2)
  for (const words of [
    'access.json:',
    'principals[0].role',
    'principals[1].name',
    'Did you mean "name"',
    'principals[0].name',
    'reserved',
  ]) {
    expect(stderr).toContain(words)
  }
})

test('9.9 an `as` that names nobody is exit 2', async () => {
  verifies('9.9-start')
  const done = await start({ file: FILE, certificates: [{ subject: 'CN=x', as: 'alise' }] }, [ALICE])
  expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean "alice"') })
})

test('9.9 a right file is no obstacle: the bus ends with its only client', async () => {
  expect(await start({ file: FILE }, [ALICE])).toMatchObject({ code: 0 })
})
