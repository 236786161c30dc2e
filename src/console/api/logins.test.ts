/** Codes and logins of the console, on a clock of the test's own. */
import { expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { LOCAL_IDENTITY } from '../../kernel/rights.ts'
import { Logins } from './logins.ts'

const ADMITTED = { identity: LOCAL_IDENTITY, proof: undefined }
const HOUR_MS = 3_600_000

function makeLogins() {
  const world = { nowMs: 1_000, holds: true }
  const logins = new Logins(
    () => world.nowMs,
    () => world.holds,
  )
  return { world, logins }
}

test('15.2 a code is good once, for five minutes, and sixteen at a time', () => {
  verifies('15.2-code')
  const { world, logins } = makeLogins()
  const code = logins.makeCode(ADMITTED)
  expect(logins.spend(code)).toBe(ADMITTED)
  expect(logins.spend(code)).toBeUndefined()
  const late = logins.makeCode(ADMITTED)
  world.nowMs += 5 * 60_000 + 1
  expect(logins.spend(late)).toBeUndefined()
  const codes = Array.from({ length: 17 }, () => logins.makeCode(ADMITTED))
  expect(codes.map((each) => logins.spend(each) === ADMITTED)).toEqual([false, ...Array(16).fill(true)])
})

test('15.3 a login ends when it is not used, after a week, by its end, and with its credential', () => {
  verifies('15.3-ends')
  const { world, logins } = makeLogins()
  const { secret, login } = logins.open(ADMITTED)
  expect(logins.find(secret)).toBe(login)
  expect(logins.find(login.key)).toBeUndefined()
  world.nowMs += 12 * HOUR_MS - 1
  expect(logins.find(secret)).toBe(login)
  world.nowMs += 12 * HOUR_MS
  expect(logins.find(secret)).toBeUndefined()

  const used = logins.open(ADMITTED)
  for (let hours = 0; hours < 168; hours += 8) {
    expect(logins.find(used.secret)).toBe(used.login)
    world.nowMs += 8 * HOUR_MS
  }
  expect(logins.find(used.secret)).toBeUndefined()

  const ended = logins.open(ADMITTED)
  logins.end(ended.login)
  expect(logins.find(ended.secret)).toBeUndefined()

  const revoked = logins.open(ADMITTED)
  world.holds = false
  expect(logins.find(revoked.secret)).toBeUndefined()
})

test('15.3 of sixty-four the one that was not used longest goes', () => {
  const { world, logins } = makeLogins()
  const all = Array.from({ length: 64 }, () => {
    world.nowMs++
    return logins.open(ADMITTED)
  })
  world.nowMs++
  logins.find(all[0]!.secret)
  logins.open(ADMITTED)
  expect(logins.find(all[0]!.secret)).toBeDefined()
  expect(logins.find(all[1]!.secret)).toBeUndefined()
})
