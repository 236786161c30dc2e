/** What holds for every page of the console (contract 15.5 to 15.7, 15.13, 15.15): names, keys, a phone, both themes, states. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startHouse } from '../e2e/access-harness.ts'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { inBrowser, openConsole, seriousFindings, sidewaysBy } from './harness.ts'

const POOLS = [pool('stderr-noise', { id: 'noisy', instances: 12 }), pool('dies-on-request')]
const MORE = { default_pool: 'noisy', aio: { store: { path: 'traces.db' } } }
const start = () => startBus({ config: config(POOLS, {}, MORE), doors: ['http', 'unix'] })

/** Of a test that goes from page to page, on a machine that does other things too. */
const PATIENCE_MS = 90_000

/** The paths of the menu, as they are built. */
const pathsOf = async (page: Page): Promise<string[]> =>
  page.locator('nav a').evaluateAll((links) => links.map((link) => (link as unknown as { pathname: string }).pathname))

inBrowser('the console in a browser: every page', () => {
  test.each([
    ['light', 1280],
    ['dark', 360],
  ] as const)(
    'in %s at %i px: a title, one heading, nothing sideways, nothing serious for axe',
    async (theme, width) => {
      verifies('15.6-names', '15.15-phone')
      const bus = await start()
      const page = await openConsole(bus, '', { theme, width })
      await page.getByRole('table', { name: 'Workers' }).waitFor()
      const paths = await pathsOf(page)
      expect(paths).toEqual(
        expect.arrayContaining(['/console/', '/console/sessions', '/console/chat', '/console/logs']),
      )
      for (const path of paths) {
        await page.goto(bus.url(path))
        const heading = page.getByRole('heading', { level: 1 })
        await heading.waitFor()
        await page.locator('.loading').waitFor({ state: 'detached' })
        expect(await heading.count(), path).toBe(1)
        expect(await page.title(), path).toBe(`${await heading.textContent()} · stdio Bus`)
        expect(await sidewaysBy(page), path).toBe(0)
        expect(await seriousFindings(page), path).toEqual([])
        await page.getByRole('button', { name: 'Log out' }).waitFor()
      }
    },
    PATIENCE_MS,
  )

  test(
    'the overview: problems with causes come and go by themselves, and a fresh page has a past',
    async () => {
      verifies('15.7-page')
      const bus = await start()
      const client = await bus.connect()
      for (let id = 1; id < 4; id++) await client.ask({ id, method: 'noise', params: { text: 'last words' } })
      const page = await openConsole(bus, '')
      const problems = page.getByRole('region', { name: /Problems/ })
      await problems.getByText('Nothing is wrong.').waitFor()
      await eventually('a past', async () => (await page.locator('.chart path[d*="L"]').count()) > 0 || undefined)
      const times = page.locator('.chart .figure').last()
      const measured = async () => (/\d/.test((await times.textContent()) ?? '') ? times.textContent() : undefined)
      expect(await eventually('times that were measured', measured, 20_000)).toMatch(/^\d+(\.\d+)?\u00a0m?s · /)
      // Often enough that it has to wait before it is started again.
      const dying = await bus.connect()
      await dying.ask({ jsonrpc: '2.0', id: 'open', method: 'bus::open', params: { pool: 'dies-on-request' } })
      for (let id = 1; id <= 4; id++) await dying.ask({ id, method: 'die' })
      await problems
        .getByText(/dies-on-request\.\d+ has ended/)
        .first()
        .waitFor()
      await problems.getByText('Nothing is wrong.').waitFor({ timeout: 30_000 })
    },
    PATIENCE_MS,
  )

  test('keys: / goes to the filter, Esc leaves it, ? lists them; logs are filtered, paused and drawn as seen', async () => {
    verifies('15.15-keys', '15.13-page', '15.15-rows')
    const bus = await start()
    const page = await openConsole(bus, 'logs')
    await page
      .getByRole('textbox', { name: 'Filter' })
      .or(page.getByRole('searchbox', { name: 'Filter' }))
      .waitFor()
    // Each worker may say so many lines a second.
    const client = await bus.connect()
    const requests = Array.from({ length: 12 }, (_, id) => ({
      id,
      method: 'noise',
      params: { lines: 90, text: 'many' },
    }))
    for (const request of requests) client.send(request)
    await client.take(12)
    await page.getByText('many 89').first().waitFor()
    expect(await page.locator('.log-line').count()).toBeGreaterThan(5)
    expect(await page.locator('.log-line').count()).toBeLessThan(120)
    await page.keyboard.press('/')
    await page.keyboard.type('many 55')
    await page.getByText('many 55').first().waitFor()
    expect(new URL(page.url()).search).toContain('many')
    await eventually('the others to go', async () => (await page.getByText('many 89').count()) === 0 || undefined)
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Go on' }).waitFor()
    await page.getByRole('combobox', { name: 'Level' }).selectOption('error')
    await eventually('only errors', async () => (await page.getByText('many 55').count()) === 0 || undefined)
  })

  test('logs: what one pool said is found behind thousands of lines of others, and scrolling up fetches what came before', async () => {
    verifies('15.13-page')
    const bus = await startBus({
      config: config(
        [pool('stderr-noise', { id: 'noisy', instances: 12 }), pool('stderr-noise', { id: 'calm' })],
        {},
        MORE,
      ),
      doors: ['http', 'unix'],
    })
    const client = await bus.connect()
    for (let id = 0; id < 12; id++) client.send({ id, method: 'noise', params: { lines: 90, text: `many of ${id},` } })
    await client.take(12)
    const page = await openConsole(bus, 'logs?pool=calm')
    await page.getByText('from stderr').waitFor()
    await page.getByRole('combobox', { name: 'Pool' }).selectOption('')
    await page
      .getByText(/many of \d+, 89/)
      .first()
      .waitFor()
    const lines = page.getByRole('group', { name: 'Log lines' })
    await eventually('the first line of the bus', async () => {
      await lines.evaluate((box) => ((box as unknown as { scrollTop: number }).scrollTop = 0))
      return (await page.locator('.log-line', { hasText: 'calm' }).count()) > 0 || undefined
    })
  })

  test('the overview: a problem leads to its log, and its worker is restarted from there', async () => {
    verifies('15.7-page')
    const command = '/bin/sh'
    const dying = { id: 'dying', command, args: ['-c', 'echo "no <b>key</b>" >&2; exit 7'], instances: 1 }
    const bus = await startBus({ config: config([dying]), doors: ['http'] })
    const page = await openConsole(bus, '')
    const problems = page.getByRole('region', { name: /Problems/ })
    await problems.getByText(/dying\.0 has ended too often/).waitFor({ timeout: 30_000 })
    await problems.getByText('its only worker is parked').waitFor()
    const lives = async () => (await bus.status()).workers[0]!.generation
    const before = await lives()
    await problems.getByRole('button', { name: /Restart dying\.0/ }).click()
    await eventually('another life', async () => (await lives()) > before || undefined)
    await problems.getByRole('link', { name: /^Log: dying\.0/ }).click()
    await page.getByText('no <b>key</b>').first().waitFor()
  })

  test('loading, empty and failed look different, and Retry tries again; another version offers to be loaded', async () => {
    verifies('15.15-states', '15.15-upgrade')
    const bus = await start()
    const page = await openConsole(bus, 'logs', { isRough: true })
    let isBroken = true
    await page.route('**/api/pools*', async (route) => {
      if (!isBroken) return route.continue()
      await new Promise((resolve) => setTimeout(resolve, 300))
      await route.fulfill({ status: 500, json: { error: { reason: 'internal_error', message: 'It broke.' } } })
    })
    await page.goto(bus.url('/console/chat'))
    await page.getByRole('status').getByText('Loading').waitFor()
    await page.getByRole('alert').getByText('It broke.').waitFor()
    isBroken = false
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByRole('link', { name: /noisy/ }).waitFor()
    await page.goto(bus.url('/console/sessions'))
    await page.getByText('No sessions yet').waitFor()
    await page.route('**/api/login', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), version: '99.0.0' } })
    })
    await page.getByRole('button', { name: 'Log out' }).click()
    const { stdout } = await bus.run(['console', '--no-open', '--control', bus.control])
    await page.getByRole('textbox', { name: 'Code' }).fill(stdout.trim().replace(/^.*#code=/, ''))
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByText('The bus has been upgraded.').waitFor()
    await page.getByRole('button', { name: 'Reload the page' }).waitFor()
  })

  test('a user has its own pages in the menu and no others', async () => {
    verifies('15.5-menu')
    const house = await startHouse({ principals: { bob: { pools: ['echo'] } }, pools: [pool('echo')], doors: ['http'] })
    const page = await openConsole(house.bus, '', { token: house.tokens['bob']! })
    await page.getByRole('heading', { level: 1, name: 'Sessions' }).waitFor()
    const titles = await page.getByRole('navigation').getByRole('link').allTextContents()
    expect(titles).toEqual(expect.arrayContaining(['Sessions', 'Chat']))
    for (const title of ['Overview', 'Access', 'Logs', 'Configuration']) expect(titles).not.toContain(title)
    await page.goto(house.bus.url('/console/config'))
    await page.getByRole('heading', { name: 'Not for your role' }).waitFor()
  })
})
