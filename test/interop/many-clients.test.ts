/**
 * 200 clients with the same ids in mixed JSON types on 2 workers, with cancels, progress, permission questions and random
 * disconnects: no message at the wrong client, every request answered exactly once. INTEROP_SEED repeats a run.
 */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { type Bus, startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { sleep } from '../support/waiting.ts'
import { Member, seeded } from './crowd.ts'

const CLIENTS = 200
const ROUNDS = 12
const SEED = Number(process.env['INTEROP_SEED'] ?? Date.now() % 1_000_000)
const fixture = (path: string) => fileURLToPath(new URL(`../fixtures/${path}`, import.meta.url))
const pool = (path: string, more = {}) =>
  config({ id: 'crowd', command: process.execPath, args: [fixture(path)], instances: 2, ...more })

function gather(bus: Bus): Member[] {
  const path = bus.addresses[0]!.slice('unix:'.length)
  return Array.from({ length: CLIENTS }, (_, n) => new Member(`c${n}`, path))
}

/** What must hold when all is done; `mayStaySilent` says whether a cancelled request may go without an answer. */
async function judge(bus: Bus, members: readonly Member[], mayStaySilent: boolean): Promise<void> {
  expect(members.flatMap(({ name, wrong }) => wrong.map((what) => `${name}: ${what}`))).toEqual([])
  const stayed = members.filter(({ hasLeft }) => !hasLeft)
  expect(stayed.length).toBeGreaterThan(CLIENTS / 2)
  expect(stayed.length).toBeLessThan(CLIENTS)
  for (const { exchanges } of stayed) {
    for (const { answers, isCancelled, mark } of exchanges.values()) {
      if (isCancelled && mayStaySilent) expect(answers.length, mark).toBeLessThanOrEqual(1)
      else expect(answers.length, mark).toBe(1)
      for (const { error } of answers) expect(error, mark).toBeUndefined()
    }
  }
  const { outstanding, clients, dropped } = await bus.statusWhere(
    'all is answered',
    (status) => status.outstanding === 0,
  )
  expect([outstanding, clients]).toEqual([0, stayed.length])
  expect(dropped['unknown_answer'] ?? 0).toBe(0)
}

describe(`seed ${SEED}`, () => {
  test('MCP: calls with progress, cancels and disconnects', { timeout: 40_000 }, async () => {
    const bus = await startBus({ config: pool('mcp/crowd.mjs', { protocol: 'mcp' }) })
    await bus.allReady()
    const members = gather(bus)
    await Promise.all(members.map((member, n) => playMcp(member, seeded(SEED + n))))
    await judge(bus, members, true)
    for (const member of members) member.leave()
  })

  test('ACP: sessions, permission questions, cancels and disconnects', { timeout: 40_000 }, async () => {
    const bus = await startBus({ config: pool('acp/crowd.mjs') })
    await bus.allReady()
    const members = gather(bus)
    await Promise.all(members.map((member, n) => playAcp(member, seeded(SEED + n))))
    await judge(bus, members, false)
    for (const member of members) member.leave()
  })
})

async function playMcp(member: Member, chance: () => number): Promise<void> {
  const clientInfo = { name: member.name, version: '1' }
  await member.ask('initialize', () => ({ protocolVersion: '2025-11-25', capabilities: {}, clientInfo })).answer
  member.onCall = (message) => {
    const { message: mark } = message.params
    member.check(mark, message)
    const exchange = member.exchanges.get(String(mark).slice(member.name.length + 1))
    if (exchange === undefined || exchange.answers.length > 0) member.wrong.push(`late: ${JSON.stringify(message)}`)
  }
  for (let round = 0; round < ROUNDS && !member.hasLeft; round++) {
    const steps = Math.floor(chance() * 4)
    const { id, answer } = member.ask('tools/call', (mark) => ({ mark, steps, _meta: { progressToken: '$ID' } }))
    if (chance() < 0.25) await cancelSoon(member, id, chance)
    if (chance() < 0.02) return member.leave()
    await answer
  }
}

async function cancelSoon(member: Member, id: string, chance: () => number): Promise<void> {
  await sleep(chance() * 6)
  if (member.exchanges.get(id)!.answers.length > 0) return
  member.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`)
  member.waive(id)
}

async function playAcp(member: Member, chance: () => number): Promise<void> {
  const sessions = new Set<string>()
  member.onCall = (message) => {
    const { sessionId, mark, update } = message.params
    member.check(mark ?? update.mark, message)
    if (sessionId !== undefined && sessions.size > 0 && message.id !== undefined && !sessions.has(sessionId))
      member.wrong.push(`a foreign session: ${JSON.stringify(message)}`)
    if (message.id === undefined) return
    const result = { outcome: { outcome: 'selected', optionId: member.name } }
    member.send(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
  }
  await member.ask('initialize', () => ({ protocolVersion: 1 })).answer
  const { answer } = member.ask('session/new', (mark) => ({ mark, cwd: '/', mcpServers: [] }))
  const sessionId: string | undefined = (await answer)?.result.sessionId
  if (sessionId === undefined) return
  sessions.add(sessionId)
  for (let round = 0; round < ROUNDS && !member.hasLeft; round++) {
    const turn = member.ask('session/prompt', (mark) => ({ sessionId, mark }))
    const throwOf = chance()
    if (throwOf < 0.15) member.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"${sessionId}"}}`)
    else if (throwOf < 0.3)
      member.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":${turn.id}}}`)
    else if (throwOf < 0.32) return member.leave()
    const said = (await turn.answer)?.result.said
    if (said !== undefined && said !== member.name) member.wrong.push(`the agent heard ${said}`)
  }
}
