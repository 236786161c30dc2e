/** Getting into the console with a browser, and what keeps others out (contract 15.1 to 15.6, 15.15 to 15.17, 15.20). */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { inBrowser, linkTo, logIn, openConsole, openPage, openProfile } from './harness.ts'

inBrowser('the console in a browser: getting in', () => {
  const bus = sharedBus({ config: config([pool('echo'), pool('echo', { id: 'other' })]), doors: ['http'] })

  test('a link logs in once, and the code is in the address no more', async () => {
    verifies('15.2-browser', '15.6-pages')
    const link = await linkTo(bus())
    const context = await openProfile()
    const page = await context.newPage()
    await page.goto(link)
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(page.url()).toBe(bus().url('/console/'))
    expect(await page.title()).toBe('Overview · stdio Bus')
    await page.getByRole('link', { name: 'Logs' }).click()
    await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    const second = await (await openProfile()).newPage()
    await second.goto(link)
    await second.getByRole('alert').getByText('wrong, spent or too old').waitFor()
    await second.getByRole('textbox', { name: 'Code' }).fill((await linkTo(bus())).replace(/^.*=/, ''))
    await second.keyboard.press('Enter')
    await second.getByRole('region', { name: 'Problems' }).waitFor()
  })

  test('the Code field takes a code, and the whole link', async () => {
    for (const entered of [await linkTo(bus()), (await linkTo(bus())).replace(/^.*#code=/, '')]) {
      const page = await (await openProfile()).newPage()
      await page.goto(bus().url('/console/logs?level=warn'))
      await page.getByRole('textbox', { name: 'Code' }).fill(entered)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
      expect(new URL(page.url()).search).toBe('?level=warn')
    }
  })

  test('a forged cookie is nobody; whoever logs out is asked again and comes back to where it was', async () => {
    verifies('15.3-browser')
    const context = await openProfile()
    const name = `stdio_bus_${new URL(bus().url()).port}`
    await context.addCookies([{ name, value: 'A'.repeat(22), url: bus().url() }])
    const page = await openPage(context, bus(), 'logs?level=warn', { isRough: true })
    await page.getByRole('heading', { name: 'Log in' }).waitFor()
    expect((await context.request.get(bus().url('/api/overview'))).status()).toBe(401)
    await page.getByRole('textbox', { name: 'Code' }).fill((await linkTo(bus())).replace(/^.*=/, ''))
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
    expect(page.url()).toBe(bus().url('/console/logs?level=warn'))
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Log in' }).waitFor()
    expect((await context.request.get(bus().url('/api/me'))).status()).toBe(401)
  })

  test("a page of another origin reads nothing, writes nothing, opens no socket and shows no frame of the console's", async () => {
    verifies('15.4-browser')
    const server = createServer((_request, response) => response.end('<!doctype html><title>other</title>'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const context = await openProfile()
    await logIn(context, bus())
    const page = await context.newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    const outcome = await page.evaluate(`(async () => {
      const base = ${JSON.stringify(bus().url())}
      const tried = (work) => work.then(() => 'done', () => 'refused')
      const read = await tried(fetch(base + '/api/overview', { credentials: 'include' }))
      const body = { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json' }, body: '{}' }
      const written = await tried(fetch(base + '/api/reload', body))
      const socket = await new Promise((resolve) => {
        const opened = new WebSocket(base.replace('http', 'ws') + '/ws')
        opened.onopen = () => resolve('done')
        opened.onerror = () => resolve('refused')
      })
      const frame = document.createElement('iframe')
      frame.src = base + '/console/'
      document.body.append(frame)
      await new Promise((resolve) => { frame.onload = resolve })
      let inner = 'refused'
      try { inner = frame.contentDocument === null ? 'refused' : 'done' } catch {}
      return { read, written, socket, inner }
    })()`)
    expect(outcome).toEqual({ read: 'refused', written: 'refused', socket: 'refused', inner: 'refused' })
    expect(bus().log.text).not.toMatch(/reload/)
  })

  test('nothing of another origin is loaded, and nothing that stands in a page is run', async () => {
    verifies('15.16-browser')
    const context = await openProfile()
    await logIn(context, bus())
    const page = await context.newPage()
    await page.goto(bus().url('/console/'))
    const outcome = await page.evaluate(`(async () => {
      const violations = []
      document.addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective))
      await fetch('https://example.test/').catch(() => {})
      const image = new Image()
      image.src = 'https://example.test/x.png'
      await new Promise((resolve) => { image.onerror = resolve })
      let html = 'set'
      try { document.body.innerHTML = '<b>x</b>' } catch { html = 'refused' }
      await new Promise((resolve) => setTimeout(resolve, 50))
      return { html, violations: [...new Set(violations)].sort() }
    })()`)
    expect(outcome).toEqual({ html: 'refused', violations: ['connect-src', 'img-src', 'require-trusted-types-for'] })
  })

  test('an observer has no control that acts', async () => {
    verifies('15.5-browser')
    const page = await openConsole(bus(), '', { role: 'observer' })
    await page.getByRole('table', { name: 'Workers' }).getByRole('row').nth(2).waitFor()
    expect(await page.getByRole('button', { name: /^Restart/ }).count()).toBe(0)
  })
})

inBrowser('the console in a browser: a bus that goes away', () => {
  test('a lost bus is said within three seconds, and a restarted one asks for a code without a click', async () => {
    verifies('15.15-lost')
    const bus = await startBus({ config: config(pool('echo')), args: ['--http', '127.0.0.1:0'], doors: [] })
    const page = await openConsole(bus, '', { isRough: true })
    await page.getByText('live', { exact: true }).waitFor()
    const { port } = new URL(bus.url())
    await bus.stop()
    await page.getByRole('alert').getByText('does not answer').waitFor({ timeout: 3_000 })
    await startBus({
      config: config(pool('echo')),
      args: ['--http', `127.0.0.1:${port}`],
      doors: [],
      workspace: bus.workspace,
    })
    await page.getByRole('heading', { name: 'Log in' }).waitFor()
  })

  test('a bus that stands still is said within three seconds, and goes on by itself', async () => {
    verifies('15.15-lost')
    const bus = await startBus({ config: config(pool('echo')), args: ['--http', '127.0.0.1:0'], doors: [] })
    const page = await openConsole(bus, '', { isRough: true })
    await page.getByText('live', { exact: true }).waitFor()
    onTestFinished(() => void bus.child.kill('SIGCONT'))
    bus.child.kill('SIGSTOP')
    await page.getByRole('alert').getByText('does not answer').waitFor({ timeout: 3_000 })
    bus.child.kill('SIGCONT')
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })

  test('ten tabs of one browser are all live', async () => {
    verifies('15.20-tabs')
    const bus = await startBus({ config: config(pool('dies-on-request')), doors: ['http', 'unix'] })
    const context = await openProfile()
    await logIn(context, bus)
    const tabs = []
    for (let count = 0; count < 10; count++) tabs.push(await openPage(context, bus))
    for (const tab of tabs) await tab.getByText('live', { exact: true }).waitFor()
    const client = await bus.connect()
    client.send({ id: 1, method: 'die' })
    for (const tab of tabs) await tab.locator('td[data-title="Restarts"]').getByText('1', { exact: true }).waitFor()
  })
})
