// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file itself spells its references so
/** Access and configuration in a browser (contract 15.12, 15.14), with names that would like to be markup (15.17). */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { sharedHouse } from '../e2e/access-harness.ts'
import { pool } from '../support/pools.ts'
import { inBrowser, openConsole, seriousFindings, sidewaysBy } from './harness.ts'

const HOSTILE = '<img src=x onerror=alert(1)>\u202e'

inBrowser('the console in a browser: access and configuration', () => {
  const house = sharedHouse({
    principals: {
      ann: { role: 'admin' },
      bob: { pools: ['echo'] },
      leaving: { pools: [] },
    },
    pools: [pool('echo', { env: { API_KEY: 'hunter2', HOME: '${HOME}' } })],
    doors: ['http', 'tcp'],
  })

  test('who may come and who is there, without a token or a digest; Revoke asks first', async () => {
    verifies('15.12-page')
    const bob = await house().enter('bob')
    await bob.ask({ jsonrpc: '2.0', id: 1, method: 'x', params: {} })
    const page = await openConsole(house().bus, 'access', { token: house().tokens['ann']! })
    const row = page.getByRole('row', { name: /bob/ })
    await row.getByText('now').waitFor()
    expect(await row.getByRole('cell').allTextContents()).toEqual(
      expect.arrayContaining(['bob', 'user', 'echo', 'for ever', 'token', '1']),
    )
    const text = await page.locator('body').textContent()
    expect(text).not.toMatch(/sbus_|sha256|[0-9a-f]{64}/)
    await page.getByRole('button', { name: 'Revoke leaving' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(await page.getByRole('row', { name: /leaving/ }).count()).toBe(1)
    await page.getByRole('button', { name: 'Revoke leaving' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('row', { name: /leaving/ }).waitFor({ state: 'detached' })
    expect(readFileSync(house().workspace.path('access.json'), 'utf8')).not.toContain('leaving')
    expect(await seriousFindings(page)).toEqual([])
  })

  test('an observer sees who is there and can revoke nobody; names are text', async () => {
    verifies('15.17-names')
    await house().change((rows) => rows.set('eve', { name: 'eve', pools: [HOSTILE], tokens: [] }))
    const page = await openConsole(house().bus, 'access', { role: 'observer', theme: 'dark', width: 360 })
    await page.getByText('<img src=x onerror=alert(1)>\\u202e').first().waitFor()
    expect(await page.getByRole('button', { name: /^Revoke/ }).count()).toBe(0)
    expect(await page.locator('main img').count()).toBe(0)
    expect(await sidewaysBy(page)).toBe(0)
    expect(await seriousFindings(page)).toEqual([])
  })

  test('values with their origins and no secret; a change is seen, reloaded, and a bad file refused', async () => {
    verifies('15.14-page')
    const file = house().workspace.path('bus.json')
    const page = await openConsole(house().bus, 'config', { token: house().tokens['ann']! })
    const values = page.getByRole('table', { name: 'Values' })
    await values.getByRole('row', { name: /API_KEY "\(masked\)" .*:\d+/ }).waitFor()
    await values.getByRole('row', { name: /HOME "\$\{HOME\}"/ }).waitFor()
    expect(await page.content()).not.toContain('hunter2')
    await page.getByRole('textbox', { name: 'Filter' }).fill('drain_timeout_sec')
    expect(await values.getByRole('row').count()).toBe(2)
    await values.getByRole('row', { name: /default/ }).waitFor()
    expect(page.url()).toMatch(/\/console\/config\?text=drain_timeout_sec$/)
    const before = readFileSync(file, 'utf8')
    writeFileSync(file, before.replace(/"instances": ?1/, '"instances": 2'))
    await page.getByRole('button', { name: 'Look again' }).click()
    await page.getByText('pools: echo').waitFor()
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.getByText('Reloaded').waitFor()
    writeFileSync(file, before.replace('"pools"', '"polls"'))
    await page.getByRole('button', { name: 'Look again' }).click()
    await page.getByRole('region', { name: 'Findings' }).getByText('polls').first().waitFor()
    expect(await seriousFindings(page)).toEqual([])
  })
})
