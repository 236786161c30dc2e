/** What the page of traces works out before it draws: trees, axes, counterparts, groups, layouts, what part is seen. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../../../../test/conformance/verifies.ts'
import { growTree, unfolded } from './call-tree.ts'
import { layOutGraph } from './graph-layout.ts'
import { graphOf, MAX_EDGES, MAX_NODES } from './grouping.ts'
import { countDifferences, matchTraces } from './matching.ts'
import { NODE } from './node-size.ts'
import { fitInto, move, zoomAt } from './pan-zoom.ts'
import { extentOf, placeOf } from './time-axis.ts'
import type { Call, Summary } from './trace.ts'
import { join } from './trace-list.ts'

const NOON_MS = Date.UTC(2026, 2, 26, 12)

function call(id: number, fields: Partial<Call> & { readonly atMs?: number } = {}): Call {
  const { atMs = id, ...rest } = fields
  return {
    ...{ id, agent: 'reader', method: 'input', status: 'ok', protocol: 'aio', type: 'stdio', parent_id: null },
    ...{ worker: null, partials: 0, bytes_in: 0, bytes_out: 0, duration_ms: 10 },
    started_at: new Date(NOON_MS + atMs).toISOString(),
    ...rest,
  }
}

const shape = (calls: readonly Call[]): string[] =>
  growTree(calls).map(({ call: { id }, depth }) => `${'.'.repeat(depth)}${id}`)

describe('a tree', () => {
  test('has every call once, a parent before its children', () => {
    const calls = [call(1), call(2, { parent_id: 1 }), call(3), call(4, { parent_id: 2 }), call(5, { parent_id: 1 })]
    expect(shape(calls)).toEqual(['1', '.2', '..4', '.5', '3'])
    expect(growTree(calls).map(({ childCount, position, siblings }) => [childCount, position, siblings])).toEqual([
      [2, 1, 2],
      [1, 1, 2],
      [0, 1, 1],
      [0, 2, 2],
      [0, 2, 2],
    ])
  })

  test('loses nobody whose parent is not there, and cuts a ring', () => {
    expect(shape([call(2, { parent_id: 99 }), call(3, { parent_id: 2 })])).toEqual(['2', '.3'])
    expect(shape([call(1, { parent_id: 2 }), call(2, { parent_id: 1 }), call(3, { parent_id: 3 })])).toEqual([
      '1',
      '.2',
      '3',
    ])
  })

  test('is as deep as it is long', () => {
    const chain = Array.from({ length: 20_000 }, (_, index) => call(index + 1, { parent_id: index || null }))
    expect(growTree(chain).at(-1)).toMatchObject({ depth: 19_999 })
  })

  test('folds whole branches', () => {
    const rows = growTree([
      call(1),
      call(2, { parent_id: 1 }),
      call(3, { parent_id: 2 }),
      call(4, { parent_id: 1 }),
      call(5),
    ])
    const shown = (...folded: number[]) => unfolded(rows, new Set(folded)).map(({ call: { id } }) => id)
    expect(shown()).toEqual([1, 2, 3, 4, 5])
    expect(shown(2)).toEqual([1, 2, 4, 5])
    expect(shown(1, 2)).toEqual([1, 5])
  })
})

test('an axis goes from the first start to the last end, and an open call lasts until then', () => {
  const calls = [call(1, { atMs: 0, duration_ms: 100 }), call(2, { atMs: 50, duration_ms: null })]
  const extent = extentOf(calls)
  expect(extent).toEqual({ startMs: NOON_MS, totalMs: 100 })
  expect(calls.map((each) => placeOf(each, extent))).toEqual([
    { left: 0, width: 100 },
    { left: 50, width: 50 },
  ])
  expect(placeOf(call(1, { atMs: 0, duration_ms: 0 }), extentOf([call(1, { atMs: 0, duration_ms: 0 })]))).toEqual({
    left: 0,
    width: 0,
  })
})

describe('two traces', () => {
  const named = (id: number, agent: string, fields: Partial<Call> = {}) => call(id, { agent, ...fields })

  test('are matched by agent, method and order', () => {
    verifies('15.9-compare')
    const one = [named(1, 'a'), named(2, 'b', { parent_id: 1 }), named(3, 'b', { parent_id: 1, duration_ms: 10 })]
    const other = [
      named(7, 'a'),
      named(8, 'b', { parent_id: 7 }),
      named(9, 'b', { parent_id: 7, duration_ms: 30 }),
      named(10, 'b', { parent_id: 7 }),
    ]
    const pairs = matchTraces(one, other)
    expect(pairs.map((pair) => [pair.call?.id, pair.other?.id, pair.difference])).toEqual([
      [1, 7, 'same'],
      [2, 8, 'same'],
      [3, 9, 'slower'],
      [undefined, 10, 'added'],
    ])
    expect(countDifferences(pairs)).toEqual({ added: 1, missing: 0, slower: 1, same: 2 })
    expect(countDifferences(matchTraces(other, one))).toEqual({ added: 0, missing: 1, slower: 0, same: 3 })
  })

  test('what is added stands behind the branch that it follows, not in it', () => {
    const one = [named(1, 'root'), named(2, 'a', { parent_id: 1 }), named(3, 'inner', { parent_id: 2 })]
    const other = [named(1, 'root'), named(2, 'a', { parent_id: 1 }), named(3, 'new', { parent_id: 1 })]
    expect(matchTraces(one, other).map((pair) => (pair.call ?? pair.other)?.agent)).toEqual([
      'root',
      'a',
      'inner',
      'new',
    ])
    expect(matchTraces([], other).map(({ difference }) => difference)).toEqual(['added', 'added', 'added'])
    expect(matchTraces(one, []).map(({ difference }) => difference)).toEqual(['missing', 'missing', 'missing'])
  })

  test('nobody is called slower for a little, or for what is still open', () => {
    const differs = (ms: number | null, otherMs: number | null) =>
      matchTraces([call(1, { duration_ms: ms })], [call(1, { duration_ms: otherMs })])[0]!.difference
    expect([differs(1, 2.5), differs(100, 110), differs(100, null), differs(null, 100), differs(100, 90)]).toEqual(
      Array(5).fill('same'),
    )
    expect(differs(100, 130)).toBe('slower')
  })
})

describe('a graph', () => {
  test('has a node for each call and an edge from each caller', () => {
    const graph = graphOf([
      call(1),
      call(2, { parent_id: 1, status: 'error', target: 'area', error: { code: -32602 } }),
    ])
    expect(graph.nodes.map(({ title, detail, status }) => [title, detail, status])).toEqual([
      ['reader::input', '10 ms', 'ok'],
      ['reader::input', 'area · -32602 · 10 ms', 'error'],
    ])
    expect(graph.edges).toEqual([{ from: '1', to: '2', isError: true, count: 1 }])
    expect(graphOf([call(1, { parent_id: 1 }), call(2, { parent_id: 99 })]).edges).toEqual([])
  })

  test('of too many calls has a node for each agent, which leads to what failed', () => {
    verifies('15.9-graph')
    const calls = Array.from({ length: MAX_NODES + 1 }, (_, index) =>
      call(index + 1, { agent: `a${index % 3}`, parent_id: index === 0 ? null : 1, duration_ms: index }),
    )
    calls[4] = call(5, { agent: 'a1', parent_id: 1, status: 'error' })
    const { nodes, edges, isGrouped } = graphOf(calls)
    expect(isGrouped).toBe(true)
    expect(nodes.map(({ title, call: number, status }) => [title, number, status])).toEqual([
      ['a0', 199, 'ok'],
      ['a1', 5, 'error'],
      ['a2', 201, 'ok'],
    ])
    expect(edges.map(({ count, isError }) => [count, isError])).toEqual([
      [67, true],
      [67, false],
    ])
  })

  test('never has more nodes than can be looked at', () => {
    const calls = Array.from({ length: 1_000 }, (_, index) => call(index + 1, { agent: `a${index}`, parent_id: 1 }))
    const { nodes } = graphOf(calls)
    expect(nodes).toHaveLength(MAX_NODES)
    expect(nodes.at(-1)).toMatchObject({ title: '801 other agents' })
    const tangled = Array.from({ length: 5_000 }, (_, index) =>
      call(index + 1, { agent: `a${index % 199}`, parent_id: Math.max(1, Math.floor(index / 3)) }),
    )
    tangled[4_999] = call(5_000, { agent: 'a0', parent_id: 77, status: 'error' })
    const { edges, leftOut } = graphOf(tangled)
    expect([edges.length, edges[0]!.isError]).toEqual([MAX_EDGES, true])
    expect(leftOut).toBeGreaterThan(0)
  })

  test('is laid out without two nodes in one place, rings too', () => {
    const nodes = Array.from({ length: 40 }, (_, index) => String(index))
    const edges = nodes.slice(1).map((to, index) => ({ from: String(Math.floor(index / 3)), to }))
    const laidOut = layOutGraph({ nodes, edges: [...edges, { from: '39', to: '0' }] })
    for (const [index, { x, y }] of laidOut.nodes.entries()) {
      expect(x).toBeLessThan(laidOut.width)
      expect(y).toBeLessThan(laidOut.height)
      const isOver = ({ x: otherX, y: otherY }: { x: number; y: number }) =>
        Math.abs(x - otherX) < NODE.width && Math.abs(y - otherY) < NODE.height
      expect(laidOut.nodes.slice(index + 1).filter(isOver)).toEqual([])
    }
    expect(laidOut.edges).toHaveLength(40)
    expect(layOutGraph({ nodes: ['1'], edges: [] }).nodes).toHaveLength(1)
  })
})

test('a picture is fitted, moved, and zoomed about a point', () => {
  expect(fitInto({ width: 100, height: 50 }, { width: 400, height: 300 })).toEqual({ scale: 1, x: 150, y: 125 })
  expect(fitInto({ width: 2_000, height: 100 }, { width: 1_016, height: 500 })).toEqual({ scale: 0.5, x: 8, y: 225 })
  expect(zoomAt({ x: 0, y: 0, scale: 1 }, { x: 10, y: 20 }, 2)).toEqual({ x: -10, y: -20, scale: 2 })
  expect(zoomAt({ x: 5, y: 5, scale: 4 }, { x: 10, y: 20 }, 2)).toEqual({ x: 5, y: 5, scale: 4 })
  expect(move({ x: 1, y: 2, scale: 3 }, 4, 5)).toEqual({ x: 5, y: 7, scale: 3 })
})

test('the newest join what is known, or begin anew where it is not known how', () => {
  const rows = (...ids: number[]): Summary[] => ids.map((id) => ({ trace_id: String(id) }) as Summary)
  const older = (known: Summary[], fresh: Summary[], hasOlder = true) => {
    const joined = join(known, fresh, hasOlder)
    return [joined.older.map(({ trace_id }) => Number(trace_id)), joined.isAnew]
  }
  expect(older(rows(4, 3, 2, 1), rows(6, 5, 4))).toEqual([[3, 2, 1], false])
  // One that does not fit the filter any more is not among the newest, and goes.
  expect(older(rows(4, 3, 2, 1), rows(5, 4, 2))).toEqual([[1], false])
  expect(older(rows(4, 3), rows(99, 98))).toEqual([[], true])
  expect(older(rows(4, 3, 2), rows(4), false)).toEqual([[], true])
})
