import { describe, expect, it } from 'vitest'
import { parseModels, toConfigOptions } from './models.ts'

describe('models', () => {
  it('are read from a list, with the context length where it is told', () => {
    const data = [{ id: 'a' }, { id: 'b', context_length: 100 }, { id: 'c', max_model_len: 200 }, { id: 'a' }]
    expect(parseModels(JSON.stringify({ data }))).toEqual([
      { id: 'a', contextLength: 0 },
      { id: 'b', contextLength: 100 },
      { id: 'c', contextLength: 200 },
    ])
  })

  it.each(['', 'x', '{}', '{"data":5}', '{"data":[null,5,{"id":5},{"id":""}]}'])('are none in %j', (text) => {
    expect(parseModels(text)).toEqual([])
  })

  it('are bounded', () => {
    const data = Array.from({ length: 1001 }, (_, index) => ({ id: `m${index}` }))
    expect(parseModels(JSON.stringify({ data }))).toHaveLength(1000)
    expect(parseModels(JSON.stringify({ data: [{ id: 'x'.repeat(257) }] }))).toEqual([])
  })

  it('make a choice in which the current one is always there', () => {
    const models = [{ id: 'a', contextLength: 0 }]
    expect(toConfigOptions([], 'x')).toEqual([])
    expect(toConfigOptions(models, 'x')).toEqual([
      {
        id: 'model',
        name: 'Model',
        category: 'model',
        type: 'select',
        currentValue: 'x',
        options: [
          { value: 'x', name: 'x' },
          { value: 'a', name: 'a' },
        ],
      },
    ])
  })
})
