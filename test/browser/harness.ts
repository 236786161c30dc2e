/**
 * A real browser at the console of a real bus (contract 15.22): one browser for all tests of a file, a profile of its own for
 * each page that a test opens. Every page must stay in its origin and throw nothing; what it did otherwise fails its test.
 */
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { findChromium } from '../../scripts/chromium.mjs'
import type { Bus } from '../support/bus.ts'

const PATIENCE_MS = 8_000

export interface View {
  readonly role?: 'admin' | 'observer'
  /** A token instead of a code. */
  readonly token?: string
  readonly theme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
  /** The page is meant to fail somehow: what it says on its console is not held against it. */
  readonly isRough?: boolean
}

const found = await findChromium()
if ('missing' in found) process.stderr.write(`SKIPPED: the tests in a browser: ${found.missing}\n`)

let browser: Browser | undefined

/** A `describe` whose tests have a browser; without one they are skipped, and fail where `CI` is set. */
export function inBrowser(title: string, tests: () => void): void {
  if ('missing' in found) {
    test.runIf(process.env['CI'])(`${title}: a browser`, () => expect.fail(found.missing))
    describe.skip(`${title} (${found.missing})`, tests)
    return
  }
  describe(title, () => {
    beforeAll(async () => {
      browser ??= await chromium.launch({ ...found, headless: true })
    }, 60_000)
    afterAll(async () => {
      await browser?.close()
      browser = undefined
    })
    tests()
  })
}

/** A profile in which nobody is logged in. */
export async function openProfile({ theme = 'light', width = 1280, height = 800 }: View = {}): Promise<BrowserContext> {
  const context = await browser!.newContext({
    colorScheme: theme,
    viewport: { width, height },
    reducedMotion: 'reduce',
    acceptDownloads: true,
  })
  context.setDefaultTimeout(PATIENCE_MS)
  onTestFinished(() => context.close())
  return context
}

/** What `stdio-bus console` prints. */
export async function linkTo(bus: Bus, role = 'admin'): Promise<string> {
  const { stdout, stderr } = await bus.run(['console', '--no-open', '--control', bus.control, '--role', role])
  if (stdout === '') throw new Error(stderr)
  return stdout.trim()
}

/** A page of the console at a path, logged in. */
export async function openConsole(bus: Bus, path = '', view: View = {}): Promise<Page> {
  const context = await openProfile(view)
  await logIn(context, bus, view)
  return openPage(context, bus, path, view)
}

/** Another tab of the same profile. */
export async function openPage(context: BrowserContext, bus: Bus, path = '', view: View = {}): Promise<Page> {
  const page = await context.newPage()
  watch(page, bus, view.isRough === true)
  await page.goto(bus.url(`/console/${path}`))
  return page
}

/** Puts the cookie of a login into a profile. */
export async function logIn(context: BrowserContext, bus: Bus, { role = 'admin', token }: View = {}): Promise<void> {
  const code = token ?? (await linkTo(bus, role)).replace(/^.*#code=/, '')
  const answer = await context.request.post(bus.url('/api/login'), { data: { code } })
  expect(answer.status()).toBe(200)
}

/** No request leaves the origin, and nothing is thrown or refused by the policy of the page. */
function watch(page: Page, bus: Bus, isRough: boolean): void {
  const origin = new URL(bus.url()).origin
  const trouble: string[] = []
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (url.origin !== origin && !['data:', 'blob:'].includes(url.protocol)) trouble.push(`request to ${url.href}`)
  })
  page.on('pageerror', (error) => trouble.push(`thrown: ${error.stack ?? error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error' && !isRough) trouble.push(`console: ${message.text()}`)
    else if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text())) trouble.push(message.text())
  })
  onTestFinished(() => expect(trouble).toEqual([]))
}

/** What axe finds that is serious, with where it is. */
export async function seriousFindings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as axe.AxeResults
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')} ${failureSummary}`),
    )
}

/** How far a page can be scrolled sideways. */
export function sidewaysBy(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
