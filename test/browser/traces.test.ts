/** Traces in a browser (contract 15.9): list, waterfall, graph, a call, two side by side, downloads; and how each can be empty or fail. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startHouse } from '../e2e/access-harness.ts'
import { agent } from '../e2e/aio-harness.ts'
import { type Told, type ToldCall, tellTraces } from '../e2e/trace-file.ts'
import { type Bus, launch, startBus } from '../support/bus.ts'
import { pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { Workspace } from '../support/workspace.ts'
import { inBrowser, openConsole, seriousFindings, sidewaysBy } from './harness.ts'

/** An element that scrolls, as the functions below see it in the browser. */
interface Box {
  readonly scrollHeight: number
  scrollTo(x: number, y: number): void
}

const FAILED = 'AIO-TR-20260326-0001'
const HOSTILE = '</title><script>globalThis.pwned=1</script>\u202e\u0007/?#%'

const CALLS: readonly ToldCall[] = [
  { agent: 'orchestrator', method: 'input', atMs: 0, tookMs: 1204 },
  { agent: 'reader', method: 'resources.list', parent: 1, atMs: 14, tookMs: 68 },
  { agent: 'summarizer', method: 'input', parent: 1, atMs: 280, tookMs: 870 },
  {
    ...{ agent: 'math', method: 'tools.call', target: 'area', parent: 3, atMs: 1010, tookMs: 55, isError: true },
    input: { args: { x: '3' }, password: 'hunter2' },
    output: { text: 'x'.repeat(3_000) },
  },
]
const OTHER: readonly ToldCall[] = [
  CALLS[0]!,
  CALLS[1]!,
  { ...CALLS[2]!, tookMs: 1_900 },
  { agent: 'writer', method: 'input', parent: 1, atMs: 2_300, tookMs: 100 },
]
const NASTY: readonly ToldCall[] = [
  { agent: '<img src=x onerror=globalThis.pwned=2>', method: 'm'.repeat(3_000), target: '\u202egnp.exe\u001b[31m' },
  { agent: 'a\u0000b', method: '"><svg onload=globalThis.pwned=3>', parent: 1, input: { '<b>': '\u2066<script>' } },
]
const MANY_CALLS = 1_000
const MANY: readonly ToldCall[] = Array.from({ length: MANY_CALLS }, (_, number) => ({
  agent: `agent-${number % 17}`,
  method: 'tools.call',
  atMs: number * 3,
  tookMs: 40,
  ...(number === 0 ? {} : { parent: Math.ceil(number / 6) }),
}))

const CONFIG = { pools: [agent('reader')], aio: { store: { path: 'traces.db', redact: ['password'] } } }

function crowd(count: number): Told[] {
  const startedAtMs = Date.now() - 3_600_000
  return Array.from({ length: count }, (_, number) => ({
    id: `crowd-${String(number).padStart(5, '0')}`,
    calls: [{ agent: number % 5 === 0 ? 'fifth' : 'reader', method: 'input', isError: number % 100 === 0 }],
    startedAtMs: startedAtMs + number,
  }))
}

inBrowser('the console in a browser: traces', () => {
  let bus: Bus
  beforeAll(async () => {
    const workspace = new Workspace()
    const told: Told[] = [
      ...crowd(1_500),
      { id: 'many', calls: MANY },
      { id: HOSTILE, calls: NASTY },
      { id: 'other', calls: OTHER },
      { id: FAILED, calls: CALLS, principal: 'alice' },
    ]
    await tellTraces(workspace.path('traces.db'), told, { payloadBytes: 2_048 })
    bus = await launch({ config: CONFIG, doors: ['unix', 'http'] }, workspace)
    return async () => {
      await bus.stop()
      workspace.remove()
    }
  }, 60_000)

  const rows = (page: Page) => page.getByRole('group', { name: 'Traces' }).getByRole('link')
  const tree = (page: Page) => page.getByRole('tree', { name: 'Calls' })

  test('newest first, in a list that draws what is seen; filters are in the address and Back works', async () => {
    verifies('15.9-list', '15.6-pages')
    const page = await openConsole(bus, 'traces')
    await rows(page).first().waitFor()
    expect(await page.title()).toBe('Traces · stdio Bus')
    expect(await rows(page).first().textContent()).toMatch(/orchestrator::input.*1\.2 s.*error · 4 calls · 1 failed/s)
    expect(await page.locator('*').count()).toBeLessThan(3_000)
    const list = page.getByRole('group', { name: 'Traces' })
    // Whoever goes to the end is shown more, until there is no more.
    await eventually(
      'the oldest',
      async () => {
        await list.evaluate((element: Box) => element.scrollTo(0, element.scrollHeight))
        return (await page.getByText('crowd-00000').count()) > 0 || undefined
      },
      15_000,
    )
    await page.getByText('1,504 traces').waitFor()
    expect(await page.locator('*').count()).toBeLessThan(3_000)
    expect(await seriousFindings(page)).toEqual([])

    await page.keyboard.press('/')
    await page.keyboard.type('AREA')
    await eventually('one row', async () => (await rows(page).count()) === 1 || undefined)
    expect(new URL(page.url()).search).toBe('?text=AREA')
    await page.getByRole('textbox', { name: 'Filter' }).fill('')
    await page.getByRole('combobox', { name: 'Status' }).selectOption('error')
    await page.getByText('16 traces').waitFor()
    await page.getByText('More filters').click()
    await page.getByRole('textbox', { name: 'Agent' }).fill('math')
    await page.keyboard.press('Enter')
    await eventually('one row', async () => (await rows(page).count()) === 1 || undefined)
    expect(new URL(page.url()).search).toBe('?status=error&agent=math')
    await page.reload()
    await eventually('one row', async () => (await rows(page).count()) === 1 || undefined)
    await rows(page).click()
    await page.getByRole('heading', { level: 1, name: FAILED }).waitFor()
    await page.goBack()
    await eventually('one row', async () => (await rows(page).count()) === 1 || undefined)
    await page.getByRole('textbox', { name: 'Filter' }).fill('nothing like it')
    await page.getByText('No trace fits the filter').waitFor()
    await page.getByRole('link', { name: 'Show all traces' }).click()
    await rows(page).first().waitFor()
  })

  test('keys choose a row and open it; what is new comes to the top without moving what is read', async () => {
    verifies('15.9-list')
    const page = await openConsole(bus, 'traces?agent=reader')
    const list = page.getByRole('group', { name: 'Traces' })
    await rows(page).first().waitFor()
    await list.focus()
    for (let count = 0; count < 30; count++) await page.keyboard.press('ArrowDown')
    const chosen = await page.locator('.rows-row.chosen').textContent()
    const client = await bus.connect()
    const { trace_id: id } = await client.ask({ id: 1, method: 'reader::input', params: { inputs: [] } })
    const before = await page.locator('.rows-row.chosen').boundingBox()
    const heightOf = () => list.evaluate((element: Box) => element.scrollHeight)
    const height = await heightOf()
    await client.ask({ id: 2, method: 'reader::input', params: { inputs: [] } })
    await eventually('a longer list', async () => (await heightOf()) !== height || undefined)
    expect(await page.locator('.rows-row.chosen').textContent()).toBe(chosen)
    expect((await page.locator('.rows-row.chosen').boundingBox())?.y).toBe(before?.y)
    await page.keyboard.press('Home')
    await page.getByText(id).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('tree').waitFor()
  })

  test('a tree on a time axis, by mouse and keyboard; a call with its payloads as stored', async () => {
    verifies('15.9-waterfall', '15.9-call')
    const page = await openConsole(bus, `traces/${FAILED}`, { isRough: true })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const items = tree(page).getByRole('treeitem')
    await items.nth(3).waitFor()
    expect(await page.getByRole('heading', { level: 1 }).allTextContents()).toEqual([FAILED])
    expect(await page.title()).toBe(`Traces ${FAILED} · stdio Bus`)
    expect(await items.evaluateAll((all: { ariaLevel: string }[]) => all.map(({ ariaLevel }) => ariaLevel))).toEqual([
      '1',
      '2',
      '2',
      '3',
    ])
    expect(await items.nth(3).textContent()).toMatch(/✗.*error.*math::tools\.call area.*55 ms/)
    const bar = await items.nth(3).locator('.call-bar').boundingBox()
    const whole = await items.nth(0).locator('.call-bar').boundingBox()
    expect((bar!.x - whole!.x) / whole!.width).toBeCloseTo(1010 / 1204, 1)

    await tree(page).focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowLeft')
    expect(await items.count()).toBe(1)
    expect(await items.first().getAttribute('aria-expanded')).toBe('false')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    expect(new URL(page.url()).pathname).toBe(`/console/traces/${FAILED}/4`)
    const pane = page.getByRole('region', { name: 'Call', exact: true })
    await pane.getByText('-32602 bad: Tool area: "x" must be a number').waitFor()
    expect(await pane.getByRole('region', { name: 'Input' }).textContent()).toContain('"password": [redacted]')
    expect(await page.content()).not.toContain('hunter2')
    expect(await pane.getByRole('region', { name: 'Output' }).textContent()).toMatch(/cut at 2\.0 KiB of 2\.9 KiB/)
    await pane.getByRole('button', { name: 'Copy id' }).click()
    await pane.getByText('Copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`${FAILED}#4`)
    expect(await seriousFindings(page)).toEqual([])
    await tree(page).focus()
    await page.keyboard.press('Escape')
    await pane.waitFor({ state: 'detached' })
    await page.goBack()
    await pane.waitFor()
    await page.goto(bus.url(`/console/traces/${FAILED}/99`))
    await page.getByText('There is no such call').waitFor()
  })

  test('what the store has lost is said', async () => {
    verifies('15.9-call')
    const page = await openConsole(bus, `traces/${FAILED}`)
    await page.route('**/api/traces/*/calls/2', async (route) => {
      const answer = await (await route.fetch()).json()
      await route.fulfill({ json: { ...answer, output: null, lost: ['output'] } })
    })
    await tree(page).getByRole('treeitem').nth(1).click()
    await page.getByText('lost: it was given up under load').waitFor()
  })

  test('a graph that zooms by buttons, keys, wheel and pinch, moves by drag, and leads to calls', async () => {
    verifies('15.9-graph')
    const page = await openConsole(bus, `traces/${FAILED}`, { theme: 'dark', width: 900 })
    await page.getByRole('tab', { name: 'Graph' }).click()
    expect(new URL(page.url()).search).toBe('?view=graph')
    const graph = page.getByRole('group', { name: 'Graph of calls' })
    await graph.getByRole('link').nth(3).waitFor()
    expect((await graph.getByRole('link').allTextContents()).sort()).toEqual([
      'orchestrator::input1.2 s',
      'reader::resources.list68 ms',
      'summarizer::input870 ms',
      '✗ math::tools.callarea · -32602 · 55 ms',
    ])
    const look = () => graph.locator('svg > g').getAttribute('transform')
    const scale = async () => Number(/scale\((.*)\)/.exec((await look())!)![1])
    const fitted = await look()
    await page.getByRole('button', { name: 'Zoom in' }).click()
    const zoomed = await scale()
    await page.getByRole('button', { name: 'Zoom out' }).click()
    expect(await scale()).toBeLessThan(zoomed)
    await graph.focus()
    await page.keyboard.press('+')
    expect(await scale()).toBeCloseTo(zoomed)
    const stood = await look()
    await page.keyboard.press('ArrowLeft')
    expect(await look()).not.toBe(stood)
    await page.keyboard.press('0')
    expect(await look()).toBe(fitted)
    const { x, y, width, height } = (await graph.boundingBox())!
    await page.mouse.move(x + width - 20, y + height - 20)
    await page.mouse.wheel(0, -200)
    await eventually('a larger picture', async () => (await look()) !== fitted || undefined)
    const before = await look()
    await page.mouse.down()
    await page.mouse.move(x + width - 60, y + height - 50, { steps: 4 })
    await page.mouse.up()
    expect(await look()).not.toBe(before)
    await page.getByRole('button', { name: 'Fit' }).click()
    expect(await look()).toBe(fitted)
    await page.evaluate(`(() => {
      const element = document.querySelector('.graph-box')
      const { left, top } = element.getBoundingClientRect()
      const tell = (type, pointerId, x) =>
        element.dispatchEvent(new PointerEvent(type, { pointerId, clientX: left + x, clientY: top + 100, bubbles: true }))
      tell('pointerdown', 11, 100); tell('pointerdown', 12, 103); tell('pointermove', 12, 106)
      tell('pointerup', 11, 100); tell('pointerup', 12, 106)
    })()`)
    await eventually('a pinched picture', async () => (await look()) !== fitted || undefined)
    expect(await seriousFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Fit' }).click()
    await graph.getByRole('link', { name: /math::tools\.call/ }).click()
    await page.getByRole('region', { name: 'Call', exact: true }).getByText('math::tools.call').waitFor()
    expect(new URL(page.url()).pathname).toBe(`/console/traces/${FAILED}/4`)
  })

  test('a thousand calls: a waterfall of what is seen, a graph of agents', async () => {
    verifies('15.9-waterfall', '15.9-graph')
    const page = await openConsole(bus, 'traces/many')
    await tree(page).getByRole('treeitem').first().waitFor()
    expect(await tree(page).getByRole('treeitem').count()).toBeLessThan(100)
    const graph = page.getByRole('group', { name: 'Graph of calls' })
    await graph.getByRole('link').first().waitFor()
    expect(await graph.getByRole('link').count()).toBe(17)
    await page.getByText('Grouped by agent').waitFor()
    expect(await page.locator('*').count()).toBeLessThan(3_000)
    await tree(page).focus()
    await page.keyboard.press('End')
    await eventually('the last', async () => (await tree(page).locator('.active').count()) === 1 || undefined)
  })

  test('two traces side by side: added, missing and slower are marked', async () => {
    verifies('15.9-compare')
    const page = await openConsole(bus, `traces/${FAILED}`, { isRough: true })
    await page.getByRole('button', { name: 'Compare with' }).click()
    const dialog = page.getByRole('dialog', { name: 'Compare with' })
    await dialog.getByRole('textbox', { name: 'Filter' }).fill('writer')
    await dialog.getByRole('link', { name: /other/ }).click()
    expect(new URL(page.url()).search).toBe('?with=other')
    await page.getByText('+ 1 added').waitFor()
    const items = tree(page).getByRole('treeitem')
    const marked = (await items.allTextContents()).map((text) => text.replace(/\s+/g, ' '))
    expect(marked).toEqual([
      expect.stringMatching(/^✓ orchestrator::input1\.2 s1\.2 s$/),
      expect.stringMatching(/^✓ reader::resources\.list68 ms68 ms$/),
      expect.stringMatching(/^▲ slower✓ summarizer::input870 ms1\.9 s$/),
      expect.stringMatching(/^− missing✗error math::tools\.call area55 ms–$/),
      expect.stringMatching(/^\+ added✓ writer::input–100 ms$/),
    ])
    expect(await seriousFindings(page)).toEqual([])
    await items.nth(2).click()
    const pane = page.getByRole('region', { name: 'Call', exact: true })
    await pane.getByText('other#3').waitFor()
    await pane.getByText(`${FAILED}#3`).waitFor()
    await items.nth(4).click()
    await pane.getByText('other#4').waitFor()
    expect(await pane.getByText(`${FAILED}#4`).count()).toBe(0)
    await page.getByRole('link', { name: 'Swap' }).click()
    await page.getByText('− 1 missing').waitFor()
    expect(new URL(page.url()).pathname).toBe('/console/traces/other')
    await page.getByRole('button', { name: 'Compare no more' }).click()
    await page.getByText('− 1 missing').waitFor({ state: 'detached' })
    await page.goto(bus.url(`/console/traces/${FAILED}?with=nobody`))
    await page.getByText('There is no such trace').waitFor()
    await items.nth(3).waitFor()
  })

  test('AIO, OTLP and SVG are downloads', async () => {
    verifies('15.9-downloads')
    const page = await openConsole(bus, `traces/${FAILED}`)
    const endings = { AIO: '.json', OTLP: '.otlp.json', SVG: '.svg' }
    for (const [name, ending] of Object.entries(endings)) {
      const coming = page.waitForEvent('download')
      await page.getByRole('link', { name, exact: true }).click()
      const download = await coming
      expect(download.suggestedFilename()).toBe(`trace-${FAILED}${ending}`)
      const text = readFileSync(await download.path(), 'utf8')
      expect(text).toContain('math')
      expect(text).not.toContain('hunter2')
    }
  })

  test('names that would like to be markup are text, on a phone in both themes', async () => {
    verifies('15.17-names')
    for (const theme of ['dark', 'light'] as const) {
      const page = await openConsole(
        bus,
        `traces/${encodeURIComponent(HOSTILE)}/2?with=${encodeURIComponent(HOSTILE)}`,
        {
          ...{ theme, width: 360, height: 740 },
        },
      )
      await page.getByText('<img src=x onerror=globalThis.pwned=2>').first().waitFor()
      await page.getByText('\\u202egnp.exe\\u001b[31m').first().waitFor()
      await page.getByText('\\u2066<script>').first().waitFor()
      expect(await sidewaysBy(page)).toBe(0)
      expect(await seriousFindings(page)).toEqual([])
      await page.getByRole('tab', { name: 'Graph' }).click()
      await page.getByRole('group', { name: 'Graph of calls' }).getByRole('link').nth(1).waitFor()
      expect(await sidewaysBy(page)).toBe(0)
      expect(await seriousFindings(page)).toEqual([])
      await page.goto(bus.url('/console/traces?text=gnp.exe'))
      await page.getByText('</title><script>').first().waitFor()
      expect(await sidewaysBy(page)).toBe(0)
      expect(await seriousFindings(page)).toEqual([])
      expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
      expect(await page.locator('main img, main script').count()).toBe(0)
    }
  })

  test('what is not there and what fails say so, and Retry tries again', async () => {
    verifies('15.9-states')
    const page = await openConsole(bus, 'traces/nobody', { isRough: true })
    await page.getByText('There is no such trace').waitFor()
    await page.route('**/api/traces?*', (route) =>
      route.fulfill({ status: 500, json: { error: { reason: 'internal_error', message: 'The store is on fire.' } } }),
    )
    await page.getByRole('link', { name: 'All traces' }).click()
    const alert = page.getByRole('alert')
    await alert.getByText('The store is on fire.').waitFor()
    expect(await seriousFindings(page)).toEqual([])
    await page.unroute('**/api/traces?*')
    await alert.getByRole('button', { name: 'Retry' }).click()
    await rows(page).first().waitFor()
    await page.route('**/graph-worker-*', (route) => route.abort())
    await rows(page).first().click()
    await alert.getByText('What lays out the graph could not be loaded.').waitFor()
    await page.unroute('**/graph-worker-*')
    await alert.getByRole('button', { name: 'Retry' }).click()
    await page.getByRole('group', { name: 'Graph of calls' }).getByRole('link').first().waitFor()
  })
})

inBrowser('the console in a browser: traces of other buses', () => {
  test('a trace that goes on is seen to end; no traces yet, and none kept, say what to do', async () => {
    verifies('15.9-list', '15.9-waterfall', '15.9-states')
    const living = await startBus({ config: CONFIG, doors: ['unix', 'http'] })
    const page = await openConsole(living, 'traces')
    await page.getByText('No traces yet').waitFor()
    const client = await living.connect()
    client.send({ id: 1, method: 'reader::wait', trace_id: 'long' })
    await page.getByRole('link', { name: /reader::wait/ }).click()
    const item = page.getByRole('treeitem')
    await item.getByText('open').waitFor()
    const moved = page.locator('svg.graph > g')
    await page.getByRole('button', { name: 'Zoom out' }).click()
    const before = await moved.getAttribute('transform')
    client.send({ id: 2, method: 'reader::die', trace_id: 'short' })
    await eventually('its end', async () => (await item.textContent())?.includes('✗') || undefined)
    await page.getByRole('link', { name: '✗ reader::wait' }).waitFor()
    expect(await moved.getAttribute('transform')).toBe(before)

    const bare = await startBus({ config: { pools: [pool('echo')] }, doors: ['unix', 'http'] })
    const without = await openConsole(bare, 'traces', { isRough: true })
    await without.getByText('This bus keeps no traces').waitFor()
    expect(await seriousFindings(without)).toEqual([])
  })

  test('a user has the page with its own traces, an observer those of its pools', async () => {
    verifies('15.9-rights')
    const house = await startHouse({
      principals: { bob: {}, eve: {}, olga: { role: 'observer', pools: ['writer'] } },
      pools: [agent('reader'), agent('writer')],
      more: { aio: {} },
      doors: ['tcp', 'http'],
    })
    const client = await house.enter('bob')
    const { trace_id: id } = await client.ask({ id: 1, method: 'reader::input', params: { inputs: [] } })
    const bob = await openConsole(house.bus, 'traces', { token: house.tokens['bob']! })
    await bob.getByRole('navigation').getByRole('link', { name: 'Traces' }).waitFor()
    await bob.getByRole('link', { name: /reader::input/ }).waitFor()
    for (const who of ['eve', 'olga']) {
      const page = await openConsole(house.bus, 'traces', { token: house.tokens[who]!, isRough: true })
      await page.getByText('No traces yet').waitFor()
      await page.goto(house.bus.url(`/console/traces/${id}`))
      await page.getByText('There is no such trace').waitFor()
    }
  })
})
