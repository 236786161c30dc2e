/** Chat in a browser (contract 15.11): a client of `/ws/{pool}` like any other, whatever becomes of agent, session and bus. */
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startHouse } from '../e2e/access-harness.ts'
import { type Bus, startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { inBrowser, openConsole, seriousFindings, sidewaysBy } from './harness.ts'

const acp = (name: string): string => fileURLToPath(new URL(`../fixtures/acp/${name}.mjs`, import.meta.url))
const KEPT = { sessions: { keep_sec: 600 } }
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

function agent(name: string, more: object = {}) {
  return { id: name, command: process.execPath, args: [acp(name)], instances: 1, ...more }
}

function start(...pools: readonly object[]): Promise<Bus> {
  return startBus({ config: { ...config(pools), store: { path: 'store.db' } }, doors: ['http'] })
}

/** Of a test with many turns, on a machine that does other things too. */
const PATIENCE_MS = 90_000

/** Writes a message and sends it with the keyboard. */
async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.keyboard.press('Enter')
}

const transcriptOf = (page: Page) => page.getByRole('region', { name: 'Transcript' })

inBrowser('the console in a browser: chat', () => {
  test(
    'text, plan, tools, modes, models, commands; a reload goes on',
    async () => {
      verifies('15.11-talk', '15.11-reload')
      const bus = await start(agent('showy', KEPT))
      const page = await openConsole(bus, 'chat')
      await page.getByRole('link', { name: /showy/ }).click()
      expect(new URL(page.url()).pathname).toBe('/console/chat/showy')
      expect(await page.title()).toBe('Chat showy · stdio Bus')
      expect(await page.getByRole('heading', { level: 1 }).allTextContents()).toEqual(['Chat'])
      expect(await page.getByRole('button', { name: 'Stop' }).isDisabled()).toBe(true)
      const transcript = transcriptOf(page)
      await page.getByRole('textbox', { name: 'Message' }).fill('markdown')
      await page.getByRole('button', { name: 'Send' }).click()
      await transcript.getByText('Done.').waitFor()
      expect(await transcript.locator('strong', { hasText: 'router' }).count()).toBe(1)
      await say(page, 'plan')
      await transcript.getByText('All steps are done.').waitFor()
      await say(page, 'tools')
      await transcript.getByText('one test fails').waitFor()
      expect(await transcript.locator('.diff .added').first().textContent()).toBe('+2')
      await page.getByRole('combobox', { name: 'Mode', exact: true }).selectOption('code')
      await page.getByRole('combobox', { name: 'Model' }).selectOption('large')
      await page.getByRole('textbox', { name: 'Message' }).fill('/re')
      await page.getByRole('button', { name: '/review reviews the last change' }).waitFor()
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('Enter')
      expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('/review ')
      await page.keyboard.press('Enter')
      await transcript.getByText('You said: /review').waitFor()
      expect(await seriousFindings(page)).toEqual([])
      await page.reload()
      await transcript.getByText('You said: /review').waitFor()
      expect(await transcript.locator('.said.person').allTextContents()).toEqual([
        'youmarkdown',
        'youplan',
        'youtools',
        'you/review ',
      ])
      expect(await page.getByRole('combobox', { name: 'Mode', exact: true }).inputValue()).toBe('code')
      expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe('large')
      await say(page, 'go on')
      await transcript.getByText('You said: go on').waitFor()
      expect(await transcript.getByText('A new session begins here').count()).toBe(0)
      await page.getByRole('button', { name: 'New conversation' }).click()
      await page.getByText('Nothing is said yet').waitFor()
      expect(new URL(page.url()).search).toBe('')
    },
    PATIENCE_MS,
  )

  test(
    'a question is answered by a click, a turn is stopped, also after a reload in the middle of it',
    async () => {
      verifies('15.11-question', '15.11-stop')
      const bus = await start(agent('showy', KEPT))
      const page = await openConsole(bus, 'chat/showy', { theme: 'dark' })
      const transcript = transcriptOf(page)
      const question = page.getByRole('region', { name: 'The agent asks' })
      await say(page, 'permission')
      await question.getByText('Edit numbers.txt').waitFor()
      expect(await question.getByRole('button').allTextContents()).toEqual(['Allow once', 'Reject'])
      expect(await seriousFindings(page)).toEqual([])
      await page.reload()
      await question.getByRole('button', { name: 'Allow once' }).dblclick()
      await transcript.getByText('You chose yes.').waitFor()
      await question.waitFor({ state: 'detached' })
      await page.getByText('showy · idle').waitFor()
      const stop = page.getByRole('button', { name: 'Stop' })
      await say(page, 'slow')
      await stop.click()
      await transcript.getByText('The turn has ended: cancelled.').waitFor()
      await say(page, 'slow')
      await page.getByText('showy · answers').waitFor()
      await page.reload()
      await page.getByText('showy · answers').waitFor()
      await stop.click()
      await transcript.getByText('The turn has ended: cancelled.').waitFor()
      expect(await stop.isDisabled()).toBe(true)
      await say(page, 'permission')
      await question.waitFor()
      await stop.click()
      await transcript.getByText('The turn has ended: cancelled.').nth(1).waitFor()
      expect(await question.count()).toBe(0)
    },
    PATIENCE_MS,
  )

  test(
    'images go with a message and are shown; what is too large or not wanted is said',
    async () => {
      verifies('15.11-images')
      const bus = await start(agent('showy'), agent('shows-all'))
      const page = await openConsole(bus, 'chat/showy')
      const picture = { name: 'a.png', mimeType: 'image/png', buffer: Buffer.from(PIXEL, 'base64') }
      const chooser = page.getByLabel('Add images')
      await chooser.setInputFiles([picture, picture])
      await page.getByRole('button', { name: 'Remove image 2' }).click()
      await page.getByRole('textbox', { name: 'Message' }).fill('look')
      await page.getByRole('button', { name: 'Send' }).click()
      await transcriptOf(page).getByText('You said: look').waitFor()
      expect(await transcriptOf(page).locator('.person img, .agent img').count()).toBe(2)
      expect(await page.getByRole('list', { name: 'Images of this message' }).count()).toBe(0)
      await chooser.setInputFiles([{ ...picture, buffer: Buffer.alloc(1_200_000) }])
      await page.getByText(/images are too large.*1\.0 MiB/).waitFor()
      await chooser.setInputFiles([{ ...picture, mimeType: 'image/svg+xml' }])
      await page.getByText('Only PNG, JPEG, GIF and WebP').waitFor()
      const other = await openConsole(bus, 'chat/shows-all')
      await other.getByLabel('Add images').setInputFiles([picture])
      await say(other, 'look')
      await other.getByText('This agent takes no images').waitFor()
      expect(await other.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('look')
      await other.getByRole('button', { name: 'Remove image 1' }).click()
      await other.getByRole('button', { name: 'Send' }).click()
      await transcriptOf(other).locator('.said.agent', { hasText: 'look' }).waitFor()
    },
    PATIENCE_MS,
  )

  test(
    'an agent that dies in the middle: it is said, and the next message says where it begins anew',
    async () => {
      verifies('15.11-died')
      const bus = await start(agent('showy', KEPT), agent('showy', { id: 'loading', args: [acp('showy'), 'saved'] }))
      const page = await openConsole(bus, 'chat/showy', { isRough: true })
      await say(page, 'hello')
      await transcriptOf(page).getByText('You said: hello').waitFor()
      await say(page, 'die')
      await page.getByText('The process of the agent has ended').waitFor()
      await transcriptOf(page).getByText('The turn has failed').waitFor()
      expect(await seriousFindings(page)).toEqual([])
      await say(page, 'again')
      await transcriptOf(page).getByText('You said: again').waitFor()
      await transcriptOf(page).getByText('A new session begins here').waitFor()
      const loading = await openConsole(bus, 'chat/loading', { isRough: true })
      await say(loading, 'die')
      await loading.getByText('the session is brought back').waitFor()
      await say(loading, 'again')
      await transcriptOf(loading).getByText('You said: again').waitFor()
      expect(await transcriptOf(loading).getByText('You asked this.').count()).toBe(1)
      expect(await transcriptOf(loading).getByText('A new session begins here').count()).toBe(0)
    },
    PATIENCE_MS,
  )

  test(
    'a bus that restarts: the page asks for a code and then goes on with what is left',
    async () => {
      verifies('15.11-restart')
      const options = { config: { ...config(agent('showy', KEPT)), store: { path: 'store.db' } }, doors: [] }
      const bus = await startBus({ ...options, args: ['--http', '127.0.0.1:0'] })
      const page = await openConsole(bus, 'chat/showy', { isRough: true })
      await say(page, 'hello')
      await transcriptOf(page).getByText('You said: hello').waitFor()
      const { port } = new URL(bus.url())
      await bus.stop()
      await page.getByRole('alert').getByText('does not answer').waitFor()
      await page.getByText(/shuts down|connection to the bus was lost/).waitFor()
      const next = await startBus({ ...options, args: ['--http', `127.0.0.1:${port}`], workspace: bus.workspace })
      await page.getByRole('heading', { name: 'Log in' }).waitFor()
      const { stdout } = await next.run(['console', '--no-open', '--control', next.control])
      await page.getByRole('textbox', { name: 'Code' }).fill(stdout.trim().replace(/^.*#code=/, ''))
      await page.keyboard.press('Enter')
      await transcriptOf(page).getByText('You said: hello').waitFor()
      await page.getByText('The agent has lost this session').waitFor()
      await say(page, 'again')
      await transcriptOf(page).getByText('You said: again').waitFor()
      await transcriptOf(page).getByText('A new session begins here').waitFor()
    },
    PATIENCE_MS,
  )

  test(
    'what is no agent says so',
    async () => {
      verifies('15.11-no-agent')
      const mcp = fileURLToPath(new URL('../fixtures/mcp/crowd.mjs', import.meta.url))
      const tools = { id: 'tools', command: process.execPath, args: [mcp], instances: 1, protocol: 'mcp' }
      const bus = await start(pool('echo'), tools)
      const page = await openConsole(bus, 'chat/tools')
      await page.getByText('tools is no agent').waitFor()
      await page.goto(bus.url('/console/chat/echo'))
      await say(page, 'hello')
      await page.getByText('This pool cannot be talked to').waitFor()
      expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('hello')
      expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true)
      await page.getByRole('button', { name: 'Retry' }).waitFor()
      await page.goto(bus.url('/console/chat/nobody'))
      await page.getByText('There is no such pool').waitFor()
      expect(await seriousFindings(page)).toEqual([])
    },
    PATIENCE_MS,
  )

  test(
    "an agent's text is text, on a phone in the dark too",
    async () => {
      verifies('15.11-hostile')
      const bus = await start(agent('shows-all'), agent('showy'))
      const page = await openConsole(bus, 'chat/shows-all', { theme: 'dark', width: 360 })
      await say(page, 'hostile')
      await page.getByText('<script>globalThis.pwned=2</script>').first().waitFor()
      expect(await page.getByText('right\\u202eto-left \\u0007bell \\u001b[31mred').count()).toBeGreaterThan(0)
      expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
      expect(await page.locator('main img, main script, a[href^="javascript"]').count()).toBe(0)
      expect(await sidewaysBy(page)).toBe(0)
      expect(await seriousFindings(page)).toEqual([])
      await page.goto(bus.url('/console/chat/showy'))
      await say(page, 'hostile')
      await page.getByText(/The turn has failed: error \\u001b\[2J/).waitFor()
      expect(await sidewaysBy(page)).toBe(0)
    },
    PATIENCE_MS,
  )

  test(
    'the keyboard alone: from the menu to an answer',
    async () => {
      verifies('15.11-keyboard')
      const bus = await start(agent('showy'))
      const page = await openConsole(bus, '')
      await page.getByRole('link', { name: 'Chat' }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('link', { name: /showy/ }).waitFor()
      const focused = (): Promise<string> =>
        page.evaluate('document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent')
      const tabTo = async (name: RegExp): Promise<void> => {
        for (let count = 0; count < 40; count++) {
          if (name.test(await focused())) return
          await page.keyboard.press('Tab')
        }
        throw new Error(`${name} cannot be reached by Tab`)
      }
      await tabTo(/^showy/)
      await page.keyboard.press('Enter')
      await page.getByRole('textbox', { name: 'Message' }).waitFor()
      await tabTo(/^Message$/)
      await page.keyboard.type('permission')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Reject' }).waitFor()
      await page.evaluate('document.body.focus()')
      await tabTo(/^Reject$/)
      await page.keyboard.press('Enter')
      await transcriptOf(page).getByText('You chose no.').waitFor()
    },
    PATIENCE_MS,
  )

  test(
    'an observer looks on; a user talks to the pools it may use',
    async () => {
      verifies('15.11-roles')
      const house = await startHouse({
        principals: { ann: { role: 'user', pools: ['showy'] }, oz: { role: 'observer' } },
        pools: [agent('showy'), agent('shows-all')],
        doors: ['http'],
      })
      const observer = await openConsole(house.bus, 'chat/showy', { token: house.tokens['oz']! })
      await observer.getByText('Your role looks on').waitFor()
      expect(await observer.getByRole('button', { name: /Send|Stop/ }).count()).toBe(0)
      const user = await openConsole(house.bus, 'chat', { token: house.tokens['ann']! })
      await user.getByRole('link', { name: /showy/ }).click()
      expect(await user.getByRole('link', { name: /shows-all/ }).count()).toBe(0)
      await say(user, 'hello')
      await transcriptOf(user).getByText('You said: hello').waitFor()
    },
    PATIENCE_MS,
  )

  test(
    'the built-in agent answers, and its sessions are its own affair',
    async () => {
      verifies('15.11-demo')
      const bus = await start({ id: 'demo', agent: 'openai', args: ['--demo'], instances: 1 })
      const page = await openConsole(bus, 'chat/demo')
      await say(page, 'Hello')
      await page.locator('.said.agent').first().waitFor()
      await page.getByText(/demo · idle/).waitFor()
    },
    PATIENCE_MS,
  )
})
