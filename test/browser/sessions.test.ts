/** Sessions in a browser (contract 15.8): live, whole, with questions that one click answers; agents' text is text (15.17). */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type AcpClient, initialised } from '../interop/acp-peers.ts'
import { type Bus, startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { inBrowser, openConsole, openPage, seriousFindings, sidewaysBy } from './harness.ts'

const SHOWY = fileURLToPath(new URL('../fixtures/acp/shows-all.mjs', import.meta.url))

/** A bus with a session in it, and its client. */
async function startShowy(): Promise<{ bus: Bus; client: AcpClient; session: string }> {
  const pool = { id: 'coder', command: process.execPath, args: [SHOWY], instances: 1, sessions: { keep_sec: 600 } }
  const bus = await startBus({ config: { ...config(pool), store: { path: 'store.db' } }, doors: ['unix', 'http'] })
  // It never answers what it is asked.
  const [client] = await initialised(bus, 1, () => new Promise(() => {}))
  return { bus, client: client!, session: await client!.newSession() }
}

inBrowser('the console in a browser: sessions', () => {
  test('what is said is seen as it is said, with plans, tools and diffs', async () => {
    verifies('15.8-page')
    const { bus, client, session } = await startShowy()
    const page = await openConsole(bus, 'sessions')
    await page.getByRole('link', { name: /coder/ }).click()
    expect(new URL(page.url()).pathname).toBe(`/console/sessions/${session}`)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.waitFor()
    await client.prompt(session, 'show')
    await transcript.getByText('The flags are fixed').waitFor()
    expect(await transcript.locator('.diff .added').first().textContent()).toBe('+1')
    await transcript.getByText('edit the Makefile').waitFor()
    await transcript.getByText('thought (2 lines)').click()
    await transcript.getByText('The build fails because of the flags.').waitFor()
    expect(await transcript.locator('img').count()).toBe(1)
    expect(await transcript.getByRole('link', { name: 'the log' }).getAttribute('href')).toBe(
      'https://example.test/log',
    )
    const words = await transcript.textContent()
    await page.reload()
    await transcript.getByText('The flags are fixed').waitFor()
    expect(await transcript.textContent()).toBe(words)
    expect(await seriousFindings(page)).toEqual([])
  })

  test("an agent's text is text, on a phone in the dark too", async () => {
    verifies('15.17-names')
    const { bus, client, session } = await startShowy()
    await client.prompt(session, 'hostile')
    const page = await openConsole(bus, `sessions/${session}`, { theme: 'dark', width: 360 })
    await page.getByText('<script>globalThis.pwned=2</script>').first().waitFor()
    expect(await page.getByText('right\\u202eto-left \\u0007bell \\u001b[31mred').count()).toBeGreaterThan(0)
    expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
    expect(await page.locator('main img, main script, a[href^="javascript"]').count()).toBe(0)
    expect(await sidewaysBy(page)).toBe(0)
    expect(await seriousFindings(page)).toEqual([])
  })

  test('a question stands out, one click answers it, and everybody sees who has', async () => {
    verifies('15.8-question')
    const { bus, client, session } = await startShowy()
    void client.prompt(session, 'ask').catch(() => {})
    await eventually('a question', () => client.asked.length > 0 || undefined)
    client.leave()
    const page = await openConsole(bus, `sessions/${session}`)
    const other = await openPage(page.context(), bus, 'logs')
    await eventually('the title', async () => (await other.title()).startsWith('(1) ') || undefined)
    expect(await other.getByRole('link', { name: 'Sessions 1' }).count()).toBe(1)
    const question = page.getByRole('region', { name: 'The agent asks' })
    await question.getByText('Run rm -rf build').waitFor()
    expect(await question.getByRole('button').allTextContents()).toEqual(['Allow once', 'Allow always', 'Reject'])
    expect(await seriousFindings(page)).toEqual([])
    await question.getByRole('button', { name: 'Allow once' }).dblclick()
    await page.getByText('You said once.').waitFor()
    await page.getByText(/Run rm -rf build.*answered by local \(console\)/).waitFor()
    await question.waitFor({ state: 'detached' })
    await eventually('the title', async () => (await other.title()).startsWith('Logs') || undefined)
  })

  test('Message prompts, Attach and Observe move the drive, End asks first; an observer only looks', async () => {
    verifies('15.8-acts')
    const { bus, client, session } = await startShowy()
    client.leave()
    const page = await openConsole(bus, `sessions/${session}`)
    await page.getByRole('textbox', { name: 'Message' }).fill('say **this**')
    await page.keyboard.press('Enter')
    await page.locator('.said.agent strong', { hasText: 'this' }).waitFor()
    expect(await page.getByRole('button', { name: 'Attach' }).getAttribute('aria-pressed')).toBe('true')
    await page.getByRole('button', { name: 'Observe' }).click()
    await page.getByText('detached, ends').waitFor()
    await page.getByRole('button', { name: 'Attach' }).click()
    await page.getByText('local (console) (drives)').waitFor()
    const observer = await openConsole(bus, `sessions/${session}`, { role: 'observer' })
    await observer.getByText('say').first().waitFor()
    expect(await observer.getByRole('button', { name: /Attach|End|Send|Observe/ }).count()).toBe(0)
    expect(await observer.getByRole('textbox', { name: 'Message' }).count()).toBe(0)
    await page.getByRole('button', { name: 'End', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'End', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
    await observer.getByText('This session has ended.').waitFor()
    expect(await page.getByRole('textbox', { name: 'Message' }).count()).toBe(0)
  })
})
