import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { callEnd, callStart, NOON_MS, TRACE } from '../../test/fixtures/trace/calls.ts'
import { displayWidth } from '../wire/columns.ts'
import type { CallEnd, CallStart } from './call.ts'
import { growTree } from './call-tree.ts'
import type { CallDocument, TraceDocument } from './document.ts'
import { showMs } from './printable.ts'
import { renderCall } from './render-call.ts'
import { renderPage } from './render-html.ts'
import { renderList, renderTailItem } from './render-list.ts'
import { renderMermaid } from './render-mermaid.ts'
import { renderSvg } from './render-svg.ts'
import { renderTree } from './render-tree.ts'
import { openTraceStore } from './store.ts'
import { tailItem } from './tail.ts'

async function traceOf(told: [Partial<CallStart>, Partial<CallEnd> | undefined][]): Promise<TraceDocument> {
  const store = await openTraceStore({ nowMs: () => NOON_MS })
  for (const [start, end] of told) {
    store.begin(callStart(start))
    if (end) store.end(callEnd({ callId: start.callId ?? 1, ...end }))
  }
  const answer = await store.query('get', { trace_id: TRACE })
  if ('fault' in answer) throw new Error(answer.fault.message)
  return JSON.parse(answer.text)
}

const NASTY = '<script>"\'&\u001b[31m\u202e\n'
const failed = {
  status: 'error',
  error: { code: -32603, message: `boom ${NASTY}`, data: { reason: 'no_worker' } },
} as const

const story = () =>
  traceOf([
    [{ callId: 1, agent: 'queen' }, { endedAtMs: NOON_MS + 1_000 }],
    [{ callId: 2, parentId: 1, startedAtMs: NOON_MS + 100 }, { endedAtMs: NOON_MS + 600 }],
    [
      { callId: 3, parentId: 2, agent: 'math', target: NASTY, startedAtMs: NOON_MS + 500 },
      { ...failed, endedAtMs: NOON_MS + 600 },
    ],
    [{ callId: 4, agent: 'late', startedAtMs: NOON_MS + 900 }, undefined],
  ])

/** Everything that moves a cursor, changes a colour or reorders text. */
const UNSAFE = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/

describe('the tree', () => {
  it('shows who called whom, how long, and why it failed', async () => {
    const lines = renderTree(await story(), { columns: 80 }).split('\n')
    expect(lines[0]).toMatch(/^AIO-TR-20260326-0001 {2}active {2}1 error {2}4 calls {2}1 s/)
    expect(lines[3]).toMatch(/^● queen::input +1 s {2}█+$/)
    expect(lines[4]).toMatch(/^└─● reader::input +500 ms {2} +█+/)
    expect(lines[5]).toMatch(/^ {2}└─✗ math::input .* 100 ms {2} +█+/)
    expect(lines[6]).toMatch(/^ +-32603 no_worker: boom/)
    expect(lines[7]).toMatch(/^○ late::input +open {2} +░+/)
  })

  it('puts bars where the calls were on the axis', async () => {
    const lines = renderTree(await story(), { columns: 100 }).split('\n')
    const startOf = (line: string | undefined) => line?.search(/[█░▏▎▍▌▋▊▉]/) ?? -1
    const [queen, reader, math, late] = [3, 4, 5, 7].map((index) => startOf(lines[index]))
    const width = 100 - queen!
    expect([reader! - queen!, math! - queen!, late! - queen!]).toEqual(
      [0.1, 0.5, 0.9].map((at) => Math.floor(width * at)),
    )
  })

  it.each([40, 60, 100, 160])('is never wider than %i columns', async (columns) => {
    for (const line of renderTree(await story(), { columns }).split('\n')) {
      expect(displayWidth(line)).toBeLessThanOrEqual(columns)
    }
  })

  it('shows nothing of a peer unescaped', async () => {
    expect(renderTree(await story(), { columns: 160 })).not.toMatch(UNSAFE)
    const [, , call] = (await story()).calls
    expect(renderCall(TRACE, call as CallDocument)).not.toMatch(UNSAFE)
  })

  it('colours only when asked to', async () => {
    expect(renderTree(await story(), { color: true })).toContain('\u001b[31m')
  })

  it('draws chains of any depth', async () => {
    const told = Array.from({ length: 400 }, (_, n): [Partial<CallStart>, Partial<CallEnd>] => [
      { callId: n + 1, parentId: n === 0 ? null : n },
      {},
    ])
    const text = renderTree(await traceOf(told), { columns: 80 })
    expect(text).toContain('⋯399')
    expect(text.split('\n').every((line) => displayWidth(line) <= 80)).toBe(true)
  })
})

describe('the graph', () => {
  it('has a node for every call and an edge for every parent', async () => {
    const svg = renderSvg(await story())
    expect([...svg.matchAll(/class="node [a-z]+" data-call="([^"]+)"/g)].map(([, name]) => name)).toEqual(
      [1, 2, 3, 4].map((id) => `${TRACE}#${id}`),
    )
    expect(svg.match(/class="edge /g)).toHaveLength(2)
  })

  it('is well-formed, whatever peers wrote', async () => {
    verifies('T10-escaped')
    const svg = renderSvg(await story())
    expect(svg).not.toMatch(UNSAFE)
    expect(svg).not.toContain('<script')
    const open: string[] = []
    for (const [, close, name = '', self] of svg.matchAll(/<(\/?)([a-z]+)(?:\s[^<>]*?)?(\/?)>/g)) {
      if (close) expect(open.pop()).toBe(name)
      else if (!self) open.push(name)
    }
    expect(open).toEqual([])
  })

  it('puts no two cards on top of each other', async () => {
    const parents = fc.array(fc.nat(), { minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(parents, async (picks) => {
        const told = picks.map((pick, n): [Partial<CallStart>, Partial<CallEnd>] => [
          { callId: n + 1, parentId: pick % (n + 1) || null },
          {},
        ])
        const svg = renderSvg(await traceOf(told))
        const places = [...svg.matchAll(/data-call="[^"]*" transform="translate\((\S+) (\S+)\)"/g)]
        const cards = places.map(([, x, y]) => ({ x: Number(x), y: Number(y) }))
        for (const [index, card] of cards.entries()) {
          const isCovered = cards.slice(0, index).some(({ x, y }) => x === card.x && Math.abs(y - card.y) < 62)
          expect(isCovered).toBe(false)
        }
        expect(svg.match(/class="edge /g)?.length ?? 0).toBe(told.filter(([start]) => start.parentId !== null).length)
      }),
      { numRuns: 40 },
    )
  })

  it('is drawn as Mermaid with the same nodes and edges', async () => {
    const text = renderMermaid(await story())
    expect(text.match(/^ {2}c\d+\["/gm)).toHaveLength(4)
    expect(text.match(/-->/g)).toHaveLength(2)
    expect(text).toContain(':::error')
    expect(text).not.toMatch(/<script|&/)
  })
})

describe('the forest', () => {
  it('holds every call once, parents first, even when parents form a ring', () => {
    const call = (id: number, parent_id: number | null) => ({ id, parent_id }) as CallDocument
    const parentIds = fc.array(fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 20 })), { maxLength: 15 })
    fc.assert(
      fc.property(parentIds, (parents) => {
        const nodes = growTree(parents.map((parent, index) => call(index + 1, parent)))
        expect(nodes.map((node) => node.call.id).sort((a, b) => a - b)).toEqual(parents.map((_, index) => index + 1))
        for (const [index, node] of nodes.entries()) {
          if (node.parent) expect(nodes.indexOf(node.parent)).toBeLessThan(index)
        }
      }),
    )
  })
})

describe('lists and lines', () => {
  it('line up and escape', async () => {
    const store = await openTraceStore({ nowMs: () => NOON_MS })
    store.begin(callStart({ agent: NASTY }))
    const answer = await store.query('list', {})
    const text = renderList('text' in answer ? JSON.parse(answer.text).traces : [])
    expect(text).toMatch(
      /^TRACE +STATUS +STARTED +TIME +CALLS +ERRORS +AGENTS +ASKED\nAIO-TR-20260326-0001 +active .* open +1 +0 /,
    )
    expect(text).not.toMatch(UNSAFE)
  })

  it('tell of starts, ends and failures', async () => {
    const store = await openTraceStore({ nowMs: () => NOON_MS })
    const lines: string[] = []
    store.follow((event) => lines.push(renderTailItem(tailItem(event))))
    store.begin(callStart({ target: NASTY }))
    store.end(callEnd(failed))
    expect(lines[0]).toMatch(/AIO-TR-20260326-0001#1 {2}▶ reader::input/)
    expect(lines[1]).toMatch(/✗ reader::input .* 10 ms {2}boom/)
    expect(lines.join('')).not.toMatch(UNSAFE)
  })

  it.each([
    [0, '0 ms'],
    [0.25, '0.25 ms'],
    [999, '999 ms'],
    [1_204, '1.2 s'],
    [61_000, '1.02 min'],
    [7_200_000, '2 h'],
  ])('show %d ms as %s', (ms, text) => {
    expect(showMs(ms)).toBe(text)
  })
})

describe('the page', () => {
  const NASTY_TEXT = `</pre></style><img src="https://evil.test/x" onerror=alert(1)><script>alert(1)</script> ${NASTY}`
  const page = async (): Promise<string> =>
    renderPage(
      await traceOf([
        [
          {
            callId: 1,
            agent: NASTY_TEXT,
            method: 'session/prompt',
            input: { prompt: [{ type: 'text', text: `asked ${NASTY_TEXT}` }] },
          },
          { output: { stopReason: 'end_turn', outputs: [{ type: 'text', value: `said ${NASTY_TEXT}` }] } },
        ],
        [
          { callId: 2, parentId: 1, target: NASTY_TEXT },
          { ...failed, endedAtMs: NOON_MS + 600 },
        ],
      ]),
    )

  it('is one file that asks for nothing and runs nothing', async () => {
    verifies('T10-page')
    const html = await page()
    const style = /<style>([\s\S]*?)<\/style>/.exec(html)![1]!
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)![1]!
    const hash = createHash('sha256').update(style).digest('base64')
    expect(policy).toBe(`default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`)
    expect(html.match(/<style/g)).toHaveLength(1)
    expect(style).not.toMatch(/url\(|@import|@font-face/)
    const tags = new Set([...html.matchAll(/<([a-z0-9]+)/g)].map(([, name]) => name))
    for (const name of ['script', 'img', 'link', 'iframe', 'object', 'form', 'base', 'image', 'use'])
      expect(tags).not.toContain(name)
    const leads = [...html.matchAll(/<[^<>]*?\s(?:href|src|style|on\w+)="([^"]*)"/g)].map(([, target]) => target)
    expect(leads.length).toBeGreaterThan(0)
    for (const target of leads) expect(target).toMatch(/^#call-\d+$/)
  })

  it('shows what was asked and answered, and all text as text', async () => {
    const html = await page()
    expect(html).toContain('asked &#60;/pre&#62;&#60;/style&#62;&#60;img src=&#34;https://evil.test/x&#34;')
    expect(html).toContain('<h2>Answered</h2><div class="prose">said &#60;/pre&#62;')
    expect(html).not.toMatch(UNSAFE)
    expect(html.match(/class="[^"]*\bnode\b/g)).toHaveLength(2)
    expect(html.match(/<details class="call/g)).toHaveLength(2)
  })
})
