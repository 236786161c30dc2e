/**
 * Pictures of the console, taken by a real browser at the bus of the other pictures: what is wrong, and a session as it was said.
 *
 * Without a browser there are none, and the old ones stay.
 */
import { chromium } from 'playwright-core'
import { findChromium } from '../chromium.mjs'

const WIDTH = 1120
const PICTURES = [
  { name: 'console-overview', path: '', theme: 'light', height: 740, shows: (page) => page.locator('.totals') },
  { name: 'console-session', path: 'sessions', theme: 'dark', height: 1_130, shows: openSession },
]

/** Runs in the page: a folder of this machine is nobody's business. */
function showInstead([found, shown]) {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(found, shown)
}

/** The first of the list, whole: from what was asked to the answer. */
async function openSession(page) {
  await page.locator('a.session-row').first().click()
  return page.getByText('retry.test.js').last()
}

/** `link`: gives an address that logs in once. `save`: takes a name and a picture. `shown`: what stands in the place of what. */
export async function takeConsole(link, save, shown) {
  const found = await findChromium()
  if ('missing' in found) return void process.stderr.write(`no pictures of the console: ${found.missing}\n`)
  const browser = await chromium.launch({ ...found, headless: true })
  try {
    for (const { name, path, theme, height, shows } of PICTURES) {
      const context = await browser.newContext({
        viewport: { width: WIDTH, height },
        colorScheme: theme,
        reducedMotion: 'reduce',
      })
      const page = await context.newPage()
      const address = link()
      await page.goto(address)
      await page.getByRole('button', { name: 'Log out' }).waitFor()
      await page.goto(new URL(`/console/${path}`, address).href)
      await (await shows(page)).waitFor()
      await page.waitForTimeout(500)
      await page.evaluate(showInstead, shown)
      save(name, await page.screenshot())
      await context.close()
    }
  } finally {
    await browser.close()
  }
}
