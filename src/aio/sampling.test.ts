import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { mcpAgent } from '../../test/fixtures/aio/workbench.ts'
import type { McpAgent } from './agent-spec.ts'
import { Samplings, type SamplingTurn } from './sampling.ts'

const agent = mcpAgent({ sampling: { tool: 'complete' } }) as McpAgent
const reply = (text: string) => ({ content: [{ type: 'text', text }] })

function bench() {
  const clock = { now: 0 }
  const samplings = new Samplings(() => clock.now)
  const turn = (method: string, params: Record<string, unknown>, caller = 'client:1', of = agent) =>
    samplings.turn(caller, of, method, params)
  const start = (prompt = 'hi', caller = 'client:1'): SamplingTurn => {
    const begun = turn('sampling.start', { prompt }, caller)
    if ('fault' in begun) throw new Error(begun.fault.message)
    begun.keep(reply('ok'))
    return begun
  }
  const reasonOf = (answer: ReturnType<typeof turn>) =>
    'fault' in answer ? (answer.fault.data as { reason: string }).reason : undefined
  return { clock, samplings, turn, start, reasonOf }
}

describe('a sampling', () => {
  it('gives the tool the messages of the conversation', () => {
    const { turn, start } = bench()
    const { id } = start('first')
    const step = turn('sampling.step', { sampling_id: id, input: { type: 'text', value: 'second' } }) as SamplingTurn
    expect(step.request).toEqual({
      method: 'tools/call',
      target: 'complete',
      params: {
        name: 'complete',
        arguments: {
          messages: [
            { role: 'user', content: { type: 'text', text: 'first' } },
            { role: 'assistant', content: { type: 'text', text: 'ok' } },
            { role: 'user', content: { type: 'text', text: 'second' } },
          ],
        },
      },
    })
  })

  it('tries sampling/createMessage without a tool', () => {
    const { turn } = bench()
    const begun = turn(
      'sampling.start',
      { prompt: 'x', maxTokens: 7 },
      'client:1',
      mcpAgent() as McpAgent,
    ) as SamplingTurn
    expect(begun.request).toMatchObject({
      method: 'sampling/createMessage',
      params: { maxTokens: 7, messages: [{ role: 'user' }] },
    })
  })

  it('is forgotten when its turn failed', () => {
    const { turn, reasonOf } = bench()
    const { id } = turn('sampling.start', { prompt: 'x' }) as SamplingTurn
    expect(reasonOf(turn('sampling.step', { sampling_id: id, prompt: 'y' }))).toBe('unknown_sampling')
  })

  it('belongs to its caller and its agent', () => {
    verifies('N9-owner')
    const { turn, start, reasonOf, samplings } = bench()
    const { id } = start()
    const step = { sampling_id: id, prompt: 'y' }
    expect(reasonOf(turn('sampling.step', step, 'client:2'))).toBe('unknown_sampling')
    expect(reasonOf(turn('sampling.step', step, 'client:1', mcpAgent({ name: 'other' }) as McpAgent))).toBe(
      'unknown_sampling',
    )
    expect(reasonOf(turn('sampling.step', step))).toBeUndefined()
    samplings.forget('client:1')
    expect(reasonOf(turn('sampling.step', step))).toBe('unknown_sampling')
  })

  it('ends after an hour without use', () => {
    verifies('N9-bound')
    const { clock, turn, start, reasonOf } = bench()
    const { id } = start()
    clock.now = 3_599_999
    expect(reasonOf(turn('sampling.step', { sampling_id: id, prompt: 'y' }))).toBeUndefined()
    clock.now = 3_600_000
    expect(reasonOf(turn('sampling.step', { sampling_id: id, prompt: 'y' }))).toBe('unknown_sampling')
  })

  it('makes room for the thousand-and-first by forgetting the one left alone longest', () => {
    verifies('N9-bound')
    const { turn, start, reasonOf } = bench()
    const ids = Array.from({ length: 1_001 }, () => start().id)
    expect(reasonOf(turn('sampling.step', { sampling_id: ids[0], prompt: 'y' }))).toBe('unknown_sampling')
    expect(reasonOf(turn('sampling.step', { sampling_id: ids[1], prompt: 'y' }))).toBeUndefined()
  })

  it('does not grow over what the agent takes', () => {
    const { turn, reasonOf } = bench()
    const small = { ...agent, maxPayloadBytes: 10 }
    expect(reasonOf(turn('sampling.start', { prompt: 'x'.repeat(10) }, 'client:1', small))).toBeUndefined()
    expect(reasonOf(turn('sampling.start', { prompt: 'x'.repeat(11) }, 'client:1', small))).toBe('payload_too_large')
  })

  it('keeps a bounded number of bytes for each caller', () => {
    const { turn, reasonOf, start } = bench()
    const ids = Array.from({ length: 20 }, () => start('x'.repeat(3_000_000)).id)
    const known = ids.filter((id) => reasonOf(turn('sampling.step', { sampling_id: id, prompt: 'y' })) === undefined)
    expect(known.length).toBeGreaterThan(5)
    expect(known.length).toBeLessThan(12)
    expect(known.at(-1)).toBe(ids.at(-1))
  })
})
