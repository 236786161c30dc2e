/** Tools in a browser (contract 15.10): what servers of both eras offer, forms, calls, questions; their words are text (15.17). */
import { fileURLToPath } from 'node:url'
import type { Locator, Page } from 'playwright-core'
import { expect, test, vi } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { sharedHouse } from '../e2e/access-harness.ts'
import { EVERYTHING } from '../interop/mcp-peers.ts'
import { type Bus, startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { inBrowser, openConsole, seriousFindings, sidewaysBy } from './harness.ts'

const WORKBENCH = fileURLToPath(new URL('../fixtures/mcp/workbench.mjs', import.meta.url))
const MEMBER = fileURLToPath(new URL('../fixtures/aggregate/member.mjs', import.meta.url))
const NEWER = fileURLToPath(new URL('../fixtures/aio/mcp-server-v2.mjs', import.meta.url))
const HOSTILE = '<img src=x onerror=globalThis.pwned=1>\u202e\u0007'
const ESCAPED = '<img src=x onerror=globalThis.pwned=1>\\u202e\\u0007'

const workbench = (era: 'legacy' | 'modern', more: object = {}) => ({
  id: era,
  command: process.execPath,
  args: [WORKBENCH, era],
  instances: 1,
  ...more,
})

const startWorkbench = (...pools: object[]): Promise<Bus> =>
  startBus({ config: config(pools.length > 0 ? pools : [workbench('legacy')]), doors: ['unix', 'http'] })

const resultOf = (page: Page): Locator => page.getByRole('region', { name: 'Result' })
const callOf = (page: Page): Locator => page.getByRole('button', { name: 'Call', exact: true })

/** The arguments of the last call that a worker of this era has read. */
async function lastArguments(bus: Bus, era = 'legacy'): Promise<unknown> {
  const calls = bus.workspace.lines(`heard-${era}`).filter((line) => line.includes('"tools/call"'))
  return JSON.parse(calls.at(-1)!).params.arguments
}

vi.setConfig({ testTimeout: 60_000 })

inBrowser('the console in a browser: tools', () => {
  test('servers of both eras, aggregates and remote ones: what they offer, with a filter, addresses, Back', async () => {
    verifies('15.10-lists')
    verifies('15.6-pages')
    const upstream = await startWorkbench(workbench('legacy'))
    const bus = await startWorkbench(
      workbench('legacy'),
      workbench('modern'),
      { id: 'all', members: ['legacy', 'modern'] },
      { id: 'far', url: upstream.url('/mcp/legacy') },
      { id: 'everything', command: process.execPath, args: [EVERYTHING], instances: 1 },
      pool('echo', { protocol: 'plain' }),
    )
    const page = await openConsole(bus, 'tools')
    await page.getByRole('heading', { level: 1, name: 'Tools' }).waitFor()
    await page.getByRole('link', { name: /^legacy/ }).waitFor()
    expect(await page.title()).toBe('Tools · stdio Bus')
    for (const [id, tool, server] of [
      ['legacy', 'fields', /workbench 1 · MCP 2025-11-25/],
      ['modern', 'fields', /MCP 2026-07-28, stateless/],
      ['all', 'legacy_fields', /MCP 2025-11-25/],
      ['far', 'fields', /MCP 2025-11-25/],
      ['everything', 'echo', /MCP 2025-11-25/],
    ] as const) {
      await page.goto(bus.url(`/console/tools/${id}`))
      await page
        .getByRole('link', { name: new RegExp(`${tool} `) })
        .first()
        .waitFor()
      await page.getByText(server).waitFor()
    }
    await page.goto(bus.url('/console/tools/legacy'))
    for (const heading of ['Tools', 'Prompts', 'Resources', 'Resource templates']) {
      await page.keyboard.press('/')
      await page.getByRole('textbox', { name: 'Filter' }).fill({ Tools: 'fields', Prompts: 'greet' }[heading] ?? 'memo')
      await page.locator('.tools-heading', { hasText: heading }).first().waitFor()
    }
    await page.getByRole('textbox', { name: 'Filter' }).fill('greet')
    await page.getByRole('link', { name: /greet/ }).click()
    expect(page.url()).toMatch(/\/console\/tools\/legacy\/greet\?kind=prompt&text=greet$/)
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
    await page.goBack()
    expect(page.url()).toMatch(/\/console\/tools\/legacy\?text=greet$/)
    await page.getByText('Try it.').waitFor()
  })

  test('servers that were not written for this: one of each generation of the SDK', async () => {
    verifies('15.10-sent')
    verifies('15.10-questions')
    const bus = await startWorkbench(
      { id: 'everything', command: process.execPath, args: [EVERYTHING], instances: 1, sharing: 'isolated' },
      { id: 'newer', command: process.execPath, args: [NEWER], instances: 1, protocol: 'mcp', era: 'modern' },
    )
    const page = await openConsole(bus, 'tools/everything/get-sum')
    await page.getByLabel('a', { exact: true }).fill('2')
    await page.getByLabel('b', { exact: true }).fill('40.5')
    await callOf(page).click()
    await resultOf(page).getByText('The sum of 2 and 40.5 is 42.5.').waitFor()
    await page.goto(bus.url('/console/tools/everything/get-structured-content'))
    await page.getByLabel('location').selectOption('Chicago')
    await callOf(page).click()
    await resultOf(page).getByText('"temperature": 36').waitFor()
    await page.goto(bus.url('/console/tools/everything/trigger-elicitation-request'))
    await callOf(page).click()
    const question = page.getByRole('region', { name: 'The server asks' })
    await question.getByLabel('name', { exact: true }).fill('Ann')
    await question.getByLabel('check', { exact: true }).check()
    await question
      .getByRole('group', { name: /untitledMultipleSelectEnum/ })
      .getByLabel('Drums')
      .check()
    expect(await seriousFindings(page)).toEqual([])
    await question.getByRole('button', { name: 'Accept' }).click()
    await resultOf(page).getByText('User provided the requested information').first().waitFor()
    await resultOf(page).getByText('Ann').first().waitFor()
    await page.goto(bus.url('/console/tools/newer/calculate_area'))
    await page.getByText('MCP 2026-07-28, stateless').waitFor()
    await page.getByLabel('x', { exact: true }).fill('6')
    await page.getByLabel('y', { exact: true }).fill('7')
    await callOf(page).click()
    await resultOf(page).getByText('"area": 42').waitFor()
  })

  test('thousands of tools: what is seen is drawn, arrows and Enter choose, a list that changes is shown anew', async () => {
    verifies('15.10-lists')
    const many = Array.from({ length: 5_000 }, (_, at) => ({ name: `tool-${at}`, inputSchema: { type: 'object' } }))
    const options = { tools: [{ name: 'change', inputSchema: { type: 'object' } }] }
    const bus = await startWorkbench({
      id: 'member',
      command: process.execPath,
      args: [MEMBER, JSON.stringify(options)],
      instances: 1,
    })
    const page = await openConsole(bus, 'tools/member/change')
    await page.getByLabel('Arguments').fill(JSON.stringify({ lists: { tools: many } }))
    await callOf(page).click()
    await page.getByText('5,000').waitFor()
    expect(await page.locator('*').count()).toBeLessThan(1_000)
    await page.getByRole('textbox', { name: 'Filter' }).fill('tool-499')
    await page.getByText('11', { exact: true }).waitFor()
    await page.getByRole('group', { name: 'What it offers' }).focus()
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) await page.keyboard.press(key)
    await page.getByRole('heading', { name: 'tool-4990' }).waitFor()
    expect(page.url()).toMatch(/\/tools\/member\/tool-4990\?text=tool-499$/)
  })

  test('a field for each property; sent is what was entered, left out is absent, numbers are numbers', async () => {
    verifies('15.10-sent')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools/legacy/fields')
    await page.getByLabel('word', { exact: true }).fill('two\nlines "quoted"')
    await page.getByLabel('whole').fill('12345678901234567890')
    await page.getByLabel('figure').pressSequentially('1.05e1')
    await page.getByLabel('flag').check()
    await page.getByRole('group', { name: 'tags' }).getByRole('button', { name: 'Add item' }).click()
    await page.getByLabel('1', { exact: true }).fill('first')
    const place = page.getByRole('group', { name: 'place' })
    await place.getByRole('button', { name: 'Add' }).click()
    await place.getByLabel('city', { exact: true }).fill('Oslo')
    const tree = page.getByRole('group', { name: 'tree' }).first()
    await tree.getByRole('button', { name: 'Add' }).click()
    await tree.getByLabel('label').fill('root')
    await page.getByRole('group', { name: 'nick' }).getByLabel('Choice').selectOption('null')
    await page.getByLabel('free').fill('{"any": [1]}')
    await callOf(page).click()
    await resultOf(page).getByText('Success').waitFor()
    const sent = bus.workspace.lines('heard-legacy').findLast((line) => line.includes('"tools/call"'))!
    expect(sent).toContain('"whole":12345678901234567890')
    const { whole: _whole, ...others } = (await lastArguments(bus)) as Record<string, unknown>
    expect(others).toEqual({
      word: 'two\nlines "quoted"',
      figure: 10.5,
      flag: true,
      colour: 'green',
      tags: ['first'],
      place: { city: 'Oslo' },
      tree: { label: 'root' },
      nick: null,
      free: { any: [1] },
    })
    await page.getByLabel('colour').selectOption('')
    await page.getByLabel('word', { exact: true }).fill('x')
    await place.getByRole('button', { name: 'Leave out' }).click()
    await callOf(page).click()
    await eventually(
      'the second call',
      async () => ((await lastArguments(bus)) as { word: string }).word === 'x' || undefined,
    )
    expect(Object.keys((await lastArguments(bus)) as object)).not.toContain('colour')
    expect(Object.keys((await lastArguments(bus)) as object)).not.toContain('place')
    expect(await seriousFindings(page)).toEqual([])
  })

  test('what is invalid is said at its field and not sent', async () => {
    verifies('15.10-invalid')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools/legacy/fields', { theme: 'dark' })
    await page.getByLabel('figure').fill('-1')
    await page.getByLabel('whole').fill('1.5')
    await page.getByLabel('mail').fill('nobody')
    await page.getByLabel('slug').fill('Not A Slug')
    await callOf(page).click()
    await page.getByText('Not sent: 5 things are wrong above.').waitFor()
    const told = async (label: string): Promise<string | null> => {
      const ids = (await page.getByLabel(label).getAttribute('aria-describedby'))!.split(' ')
      return page.locator(`[id="${ids[0]}"]`).textContent()
    }
    expect(await told('word')).toContain('is required')
    expect(await told('figure')).toContain('must be at least 0')
    expect(await told('whole')).toContain('must be a whole number')
    expect(await told('mail')).toContain('must be of the format email')
    expect(await told('slug')).toContain('must fit')
    expect(
      await page.getByLabel('word', { exact: true }).evaluate((field) => field === field.ownerDocument.activeElement),
    ).toBe(true)
    expect(bus.workspace.lines('heard-legacy').join('')).not.toContain('tools/call')
    expect(await seriousFindings(page)).toEqual([])
    await page.getByLabel('whole').fill('two')
    expect(await told('whole')).toContain('must be a whole number')
  })

  test('JSON at any time, in step with the form; choices at the root', async () => {
    verifies('15.10-json')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools/legacy/fields')
    await page.getByRole('button', { name: 'As JSON' }).click()
    const editor = page.getByRole('textbox', { name: 'JSON', exact: true })
    await page.getByLabel('word', { exact: true }).fill('typed')
    expect(JSON.parse(await editor.inputValue())).toEqual({ colour: 'green', word: 'typed' })
    await editor.fill('{"word": "edited", "tags": ["a", "b"], "place": {"city": "Rome"}, "figure": "x"}')
    expect(await page.getByLabel('word', { exact: true }).inputValue()).toBe('edited')
    expect(await page.getByLabel('city').inputValue()).toBe('Rome')
    expect(await page.getByLabel('2', { exact: true }).inputValue()).toBe('b')
    await callOf(page).click()
    await page.getByText('Not sent: one thing is wrong above.').waitFor()
    await editor.fill('{"word": ')
    await page.getByText(/JSON input|Expected|Unexpected/).waitFor()
    await callOf(page).click()
    expect(bus.workspace.lines('heard-legacy').join('')).not.toContain('tools/call')
    await page.goto(bus.url('/console/tools/legacy/either'))
    await page.getByLabel('name').fill('x')
    await page.getByLabel('Choice').selectOption('By number')
    await page.getByLabel('number').fill('7')
    await callOf(page).click()
    await resultOf(page).getByText('Success').waitFor()
    expect(await lastArguments(bus)).toEqual({ number: 7 })
  })

  test('text, JSON, structured content, links, images, sounds; a failure is unlike a success', async () => {
    verifies('15.10-result')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools/legacy/media')
    await callOf(page).click()
    const result = resultOf(page)
    await result.getByText('✓ Success').waitFor()
    expect(await result.locator('img').count()).toBe(1)
    await eventually('the image', () =>
      result.locator('img').evaluate((image) => Reflect.get(image, 'naturalWidth') === 1 || undefined),
    )
    await result.getByText('image/svg+xml, not shown').waitFor()
    expect(await result.locator('audio').count()).toBe(1)
    expect(await result.getByRole('link', { name: 'a page' }).getAttribute('href')).toBe('https://example.test/a')
    expect(await result.locator('a[href^="javascript"]').count()).toBe(0)
    await result.getByText('"parsed": 12345678901234567890').waitFor()
    await result.getByText('"answer": 42').waitFor()
    await result.getByText('a memo').waitFor()
    await page.goto(bus.url('/console/tools/legacy/fails'))
    await callOf(page).click()
    await result.getByText('✗ Failed: the tool says so').waitFor()
    await result.getByText('it broke').waitFor()
    expect(await seriousFindings(page)).toEqual([])
    await page.goto(bus.url('/console/tools/legacy/refuses'))
    await callOf(page).click()
    await result.getByText('not like this').waitFor()
    await result.getByText('-32602').waitFor()
  })

  test('resources are read, templates filled in, prompts got', async () => {
    verifies('15.10-result')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools/legacy')
    await page.getByRole('link', { name: /memo:\/\/a\/b/ }).click()
    await callOf(page).click()
    expect(await resultOf(page).locator('img').getAttribute('src')).toMatch(/^data:image\/png/)
    await page.reload()
    await page.getByRole('heading', { name: 'memo://a/b' }).waitFor()
    await page.getByRole('link', { name: /memo:\/\/\{folder\}/ }).click()
    await page.getByLabel('folder').fill('x y')
    await callOf(page).click()
    await resultOf(page).getByText('read memo://x%20y').waitFor()
    await page.getByRole('link', { name: /greet/ }).click()
    await callOf(page).click()
    await page.getByText('is required').waitFor()
    await page.getByLabel('who').fill('Ann')
    await page.keyboard.press('Control+Enter')
    await resultOf(page).getByText('Say {"who":"Ann"}.').waitFor()
  })

  test('progress is shown, Cancel reaches the server', async () => {
    verifies('15.10-progress')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools/legacy/slowly')
    await callOf(page).click()
    const bar = page.getByRole('progressbar', { name: 'Progress' })
    await resultOf(page).getByText('3 of 8').waitFor()
    expect(await bar.getAttribute('value')).toBe('3')
    await resultOf(page).getByText(`step three ${ESCAPED}`).waitFor()
    expect(await callOf(page).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await resultOf(page).getByText('Cancelled').waitFor()
    await eventually('the cancel', () =>
      bus.workspace.lines('heard-legacy').find((line) => line.includes('notifications/cancelled')),
    )
    expect(await callOf(page).isDisabled()).toBe(false)
  })

  test.each(['legacy', 'modern'] as const)('a question of a %s server is a form, and is answered', async (era) => {
    verifies('15.10-questions')
    const bus = await startWorkbench(workbench(era, { sharing: 'isolated' }))
    const page = await openConsole(bus, `tools/${era}/asks`)
    await callOf(page).click()
    const question = page.getByRole('region', { name: 'The server asks' })
    await question.getByText('Who are you?').waitFor()
    await question.getByLabel('age').fill('-5')
    await question.getByRole('button', { name: 'Accept' }).click()
    await question.getByText('is required').waitFor()
    await question.getByText('must be at least 0').waitFor()
    expect(await seriousFindings(page)).toEqual([])
    await question.getByLabel('name').fill('Ann')
    await question.getByLabel('age').fill('7')
    await question.getByRole('button', { name: 'Accept' }).click()
    const answer = resultOf(page).locator('.result-text').first()
    await answer.waitFor()
    const told = JSON.parse((await answer.textContent())!)
    expect(told.who ?? told).toEqual({ action: 'accept', content: { name: 'Ann', age: 7 } })
    await callOf(page).click()
    await question.getByRole('button', { name: 'Decline' }).click()
    await resultOf(page).getByText('"decline"').waitFor()
  })

  test('a question that the console cannot answer is refused', async () => {
    verifies('15.10-questions')
    const bus = await startWorkbench(workbench('legacy', { sharing: 'isolated' }))
    const page = await openConsole(bus, 'tools/legacy/samples')
    await callOf(page).click()
    await resultOf(page).getByText('-3260').waitFor()
  })

  test('hostile words are text, hostile schemas do not stop the page; a phone in the dark', async () => {
    verifies('15.10-hostile')
    verifies('15.17-names')
    const bus = await startWorkbench()
    const page = await openConsole(bus, `tools/legacy/${encodeURIComponent(HOSTILE)}`, { theme: 'dark', width: 360 })
    await page.getByRole('heading', { name: ESCAPED }).waitFor()
    await page.getByLabel(ESCAPED).selectOption('b')
    await callOf(page).click()
    await resultOf(page).getByText('<script>globalThis.pwned=3</script>').waitFor()
    expect(await lastArguments(bus)).toEqual({ [HOSTILE]: 'b' })
    expect(await page.locator('main img, main script').count()).toBe(0)
    expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
    expect(await sidewaysBy(page)).toBe(0)
    expect(await seriousFindings(page)).toEqual([])
    await page.goto(bus.url('/console/tools/legacy/slow'))
    await page.getByLabel('expression').fill(`${'a'.repeat(200)}!`)
    await callOf(page).click()
    await page.getByText('Not sent: one thing is wrong').waitFor()
    for (const name of ['deep', 'wide', 'circle']) {
      await page.goto(bus.url(`/console/tools/legacy/${name}`))
      await callOf(page).waitFor()
      await page.getByRole('button', { name: 'As JSON' }).click()
      await page.getByRole('textbox', { name: 'JSON', exact: true }).fill('{"p1": {}}')
      expect(await sidewaysBy(page)).toBe(0)
      expect(await page.locator('*').count()).toBeLessThan(6_000)
    }
  })

  test('a connection that was lost comes back without a click, and a call under way is said to have failed', async () => {
    verifies('15.10-states')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools', { isRough: true })
    let lose = (): void => {}
    await page.routeWebSocket('**/ws/**', (socket) => {
      const server = socket.connectToServer()
      lose = () => {
        void server.close()
        void socket.close({ code: 1001, reason: 'shutting_down' })
      }
    })
    await page.goto(bus.url('/console/tools/legacy/slowly'))
    await callOf(page).click()
    await resultOf(page).getByText('3 of 8').waitFor()
    lose()
    await page.getByText('The connection to legacy was lost').waitFor()
    await resultOf(page).getByText('The bus shuts down.').waitFor()
    await page.getByText('The connection to legacy was lost').waitFor({ state: 'detached' })
    await callOf(page).click()
    await resultOf(page).getByText('3 of 8').waitFor()
  })

  test('what cannot be had, is not there or is not found is said, each in its own way', async () => {
    verifies('15.10-states')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools/nowhere', { isRough: true })
    await page.getByText('The connection was refused').waitFor()
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('The connection was refused').waitFor()
    await page.goto(bus.url('/console/tools/legacy/no-such-tool'))
    await page.getByText('There is no tool of this name').waitFor()
    await page.getByRole('textbox', { name: 'Filter' }).fill('zzz')
    await page.getByText('Nothing fits the filter').waitFor()
    const none = await startWorkbench(pool('echo', { protocol: 'acp' }))
    const empty = await openConsole(none, 'tools')
    await empty.getByText('No pool speaks MCP').waitFor()
    expect(await seriousFindings(empty)).toEqual([])
  })

  test.each([
    ['light', 1280],
    ['dark', 768],
    ['light', 360],
    ['dark', 360],
  ] as const)('%s at %i px: nothing serious, nothing sideways', async (theme, width) => {
    verifies('15.10-states')
    const bus = await startWorkbench()
    const page = await openConsole(bus, 'tools', { theme, width })
    await page.getByRole('link', { name: /^legacy/ }).waitFor()
    const isSound = async (): Promise<void> => {
      expect(await seriousFindings(page)).toEqual([])
      expect(await sidewaysBy(page)).toBe(0)
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
    }
    await isSound()
    await page.goto(bus.url('/console/tools/legacy'))
    await page.getByRole('link', { name: /^fields/ }).waitFor()
    await isSound()
    await page.goto(bus.url('/console/tools/legacy/fields'))
    for (const name of ['place', 'tree', 'both'])
      await page.getByRole('group', { name }).getByRole('button', { name: 'Add', exact: true }).first().click()
    await page.getByRole('button', { name: 'As JSON' }).click()
    await callOf(page).click()
    await page.getByText('Not sent').waitFor()
    await isSound()
    await page.goto(bus.url('/console/tools/legacy/media'))
    await callOf(page).click()
    await resultOf(page).getByText('Success').waitFor()
    await isSound()
  })

  const house = sharedHouse({
    principals: { ann: { pools: ['legacy'] }, eve: { role: 'observer', pools: ['legacy'] } },
    pools: [workbench('legacy'), workbench('modern')],
    doors: ['http'],
  })

  test('a user has the pools it may use; an observer sees the page and calls nothing', async () => {
    verifies('15.5-browser')
    const { bus, tokens } = house()
    const page = await openConsole(bus, 'tools', { token: tokens['ann']! })
    await page.getByRole('link', { name: /^legacy/ }).click()
    await page.getByRole('link', { name: /^nothing/ }).click()
    await callOf(page).click()
    await resultOf(page).getByText('was called').waitFor()
    expect(await page.getByRole('option', { name: 'modern' }).count()).toBe(0)
    const observer = await openConsole(bus, 'tools', { token: tokens['eve']! })
    await observer.getByRole('link', { name: /^legacy/ }).click()
    await observer.getByText('An observer sends no message').waitFor()
    expect(await callOf(observer).count()).toBe(0)
    expect(await seriousFindings(observer)).toEqual([])
  })
})
