import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { Crossing, type Verdict } from './crossing.ts'

type Way = 'outward' | 'inward'

function judge(crossing: Crossing, way: Way, line: string | object): Verdict {
  const bytes = Buffer.from(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`)
  return crossing[way](bytes, 0, bytes.length - 1)
}

function textOf(verdict: Verdict): string {
  if (typeof verdict === 'string') return verdict
  return ('on' in verdict ? verdict.on : verdict.back).toString()
}

describe('requests', () => {
  test('are owed until they are answered, each id in its own type', () => {
    const crossing = new Crossing()
    for (const id of [5, '5']) judge(crossing, 'outward', { id, method: 'x' })
    expect(judge(crossing, 'inward', { id: 5, result: {} })).toBe('pass')
    expect(crossing.requests.isSettled).toBe(false)
    expect(crossing.lose()).toEqual(['"5"'])
    expect(crossing.requests.isSettled).toBe(true)
  })

  test('the same id twice is owed twice', () => {
    const crossing = new Crossing()
    judge(crossing, 'outward', '{"id":1,"method":"x"}')
    judge(crossing, 'outward', '{"id":1.0,"method":"x"}')
    judge(crossing, 'inward', { id: 1, result: null })
    expect(crossing.lose()).toEqual(['1'])
  })

  test('keep the spelling of their id', () => {
    const crossing = new Crossing()
    for (const id of ['1e2', '"\\u0041"', '12345678901234567890'])
      judge(crossing, 'outward', `{"method":"x","id":${id}}`)
    expect(crossing.lose()).toEqual(['1e2', '"\\u0041"', '12345678901234567890'])
  })

  test('cancelled as in MCP: nothing is owed', () => {
    const crossing = new Crossing()
    judge(crossing, 'outward', { id: 1, method: 'x' })
    judge(crossing, 'outward', { method: 'notifications/cancelled', params: { requestId: 1 } })
    expect(crossing.requests.isSettled).toBe(true)
    expect(crossing.lose()).toEqual([])
  })

  test('cancelled as in ACP: not waited for, but told when the bus goes', () => {
    const crossing = new Crossing()
    judge(crossing, 'outward', { id: 1, method: 'x' })
    judge(crossing, 'outward', { method: '$/cancel_request', params: { requestId: 1 } })
    expect(crossing.requests.isSettled).toBe(true)
    expect(crossing.lose()).toEqual(['1'])
  })

  test('beyond the bound are answered here', () => {
    verifies('6.10.6-bounds')
    const crossing = new Crossing()
    for (let id = 0; id < 65_536; id++) expect(judge(crossing, 'outward', { id, method: 'x' })).toBe('pass')
    const refused = judge(crossing, 'outward', { id: 'more', method: 'x' })
    expect(JSON.parse(textOf(refused))).toMatchObject({ id: 'more', error: { data: { reason: 'too_many_pending' } } })
  })

  test('that come in one array are owed like any others, and answered in one array or alone', () => {
    verifies('6.10.2-eof', '6.10.4-pending')
    const crossing = new Crossing()
    const array =
      '[{"id":1,"method":"x"}, {"id":"a","method":"x"},{"method":"note"},{"id":1e2,"method":"x"},{"id":4,"method":"x"}]'
    expect(judge(crossing, 'outward', array)).toBe('pass')
    expect(judge(crossing, 'outward', [{ method: 'notifications/cancelled', params: { requestId: 4 } }])).toBe('pass')
    expect(judge(crossing, 'inward', [{ id: 1, result: {} }])).toBe('pass')
    expect(crossing.requests.isSettled).toBe(false)
    judge(crossing, 'inward', { id: 'a', error: { code: 1, message: 'x' } })
    expect(crossing.lose()).toEqual(['1e2'])
  })
})

describe('questions', () => {
  test('may be answered in one array; what a lost bus asked is left out of it', () => {
    const crossing = new Crossing()
    judge(crossing, 'inward', { id: 1, method: 'ask' })
    crossing.lose()
    const { id } = JSON.parse(textOf(judge(crossing, 'inward', { id: 1, method: 'ask' })))
    const answers = [
      { id: 1, result: 'late' },
      { id, result: 'right' },
      { id: 5, method: 'x' },
    ]
    expect(textOf(judge(crossing, 'outward', answers))).toBe('[{"id":1,"result":"right"},{"id":5,"method":"x"}]\n')
    expect(crossing.lose()).toEqual(['5'])
    judge(crossing, 'inward', { id: 2, method: 'ask' })
    crossing.lose()
    expect(judge(crossing, 'outward', [{ id: 2, result: 'late' }])).toBe('swallow')
    expect(judge(crossing, 'outward', '[ ]')).toBe('pass')
  })

  test('pass with their answers untouched', () => {
    const crossing = new Crossing()
    expect(judge(crossing, 'inward', { id: 1, method: 'ask' })).toBe('pass')
    expect(judge(crossing, 'outward', { id: 1, result: {} })).toBe('pass')
    expect(judge(crossing, 'outward', { id: 1, result: 'nobody asked' })).toBe('pass')
  })

  test('of a lost bus: the late answer is swallowed, once', () => {
    const crossing = new Crossing()
    judge(crossing, 'inward', { id: 1, method: 'ask' })
    crossing.lose()
    expect(judge(crossing, 'outward', { id: 1, result: {} })).toBe('swallow')
    expect(judge(crossing, 'inward', { id: 1, method: 'ask' })).toBe('pass')
  })

  test('with an id that is still in the hands of this side are put with another, and cancelled with it', () => {
    const crossing = new Crossing()
    judge(crossing, 'inward', { id: 1, method: 'ask' })
    crossing.lose()
    const put = textOf(judge(crossing, 'inward', '{"method":"ask", "id" : 1 ,"params":{"id":1}}'))
    const { id } = JSON.parse(put)
    expect(put).toBe(`{"method":"ask", "id" : ${JSON.stringify(id)} ,"params":{"id":1}}\n`)
    const cancel = textOf(judge(crossing, 'inward', { method: '$/cancel_request', params: { requestId: 1 } }))
    expect(JSON.parse(cancel).params.requestId).toBe(id)
    expect(judge(crossing, 'outward', { id: 1, result: 'late' })).toBe('swallow')
    expect(textOf(judge(crossing, 'outward', { id, result: 'right' }))).toBe('{"id":1,"result":"right"}\n')
  })

  test('to a side that has ended its input are answered here', () => {
    const crossing = new Crossing()
    crossing.isDeaf = true
    const verdict = judge(crossing, 'inward', { id: 'q', method: 'ask' })
    expect(verdict).toHaveProperty('back')
    expect(JSON.parse(textOf(verdict))).toMatchObject({ id: 'q', error: { data: { reason: 'client_gone' } } })
  })

  test('after very many lost ones every question gets an id of ours', () => {
    const crossing = new Crossing()
    for (let id = 0; id <= 10_000; id++) judge(crossing, 'inward', { id, method: 'ask' })
    crossing.lose()
    expect(judge(crossing, 'inward', { id: 'fresh', method: 'ask' })).toHaveProperty('on')
  })
})

describe('the introduction', () => {
  const initialize = '{"jsonrpc":"2.0","params":{"protocolVersion":"2025-06-18"},"id":0,"method":"initialize"}'

  test('is kept once it was answered, with its confirmation', () => {
    const crossing = new Crossing()
    judge(crossing, 'outward', initialize)
    expect(crossing.introduction.repeat('"x"')).toBeUndefined()
    judge(crossing, 'inward', { id: 0, result: {} })
    judge(crossing, 'outward', { method: 'notifications/initialized' })
    expect(crossing.introduction.repeat('"x"')?.toString()).toBe(`${initialize.replace('"id":0', '"id":"x"')}\n`)
    expect(crossing.introduction.confirmation?.toString()).toBe('{"method":"notifications/initialized"}\n')
  })

  test('that was refused is not kept', () => {
    const crossing = new Crossing()
    judge(crossing, 'outward', initialize)
    judge(crossing, 'inward', { id: 0, error: { code: -32602, message: 'no' } })
    expect(crossing.introduction.repeat('1')).toBeUndefined()
  })
})

describe('what the bus says of the connection', () => {
  test('a fault that closes it is remembered even when answers follow', () => {
    const crossing = new Crossing()
    judge(crossing, 'inward', {
      id: null,
      error: { code: -32700, message: 'no\u001b[2J', data: { reason: 'not_json' } },
    })
    judge(crossing, 'inward', { id: 1, result: {} })
    expect(crossing.refusal?.reason).toBe('not_json')
    expect(crossing.refusal?.message).not.toContain('\u001b')
  })

  test('an error that answers a request is none', () => {
    const crossing = new Crossing()
    judge(crossing, 'inward', { id: 1, error: { code: -32603, message: 'no', data: { reason: 'worker_exited' } } })
    expect(crossing.refusal).toBeUndefined()
    expect(crossing.lastWord?.reason).toBe('worker_exited')
  })

  test('an answer to a request of the connection itself stays here', () => {
    const crossing = new Crossing()
    const answers: string[] = []
    crossing.own.set('mine', (line) => answers.push(line.toString()))
    expect(judge(crossing, 'inward', { id: 'mine', result: {} })).toBe('swallow')
    expect(judge(crossing, 'inward', { id: 'mine', result: {} })).toBe('pass')
    expect(answers).toEqual(['{"id":"mine","result":{}}\n'])
  })
})

test.each(['no json', '[]', '{"id":1}', '', '   ', '{"id":null,"method":"x"}'])(
  '%j is for the bus to judge',
  (line) => {
    const crossing = new Crossing()
    expect(judge(crossing, 'outward', line)).toBe('pass')
    expect(crossing.lose()).toEqual([])
  },
)
