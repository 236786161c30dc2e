#!/usr/bin/env node
/**
 * The program: reads its environment, serves ACP on stdin and stdout, and ends within a second of being told to.
 *
 * stdout carries protocol only; everything else goes to stderr. Exit codes: 0 a clean end, 1 a failure of the world,
 * 2 a mistake in the arguments or the environment.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { demoModel, startDemo } from '../demo-endpoint/demo.ts'
import { OpenAiAgent } from './agent.ts'
import { toApp } from './app.ts'
import { type Config, type Environment, readConfig } from './config.ts'
import { reasonOf } from './errors.ts'
import { logToStderr as log } from './log.ts'
import { SessionStore } from './session-store.ts'
import { openStdio } from './stdio-stream.ts'

const usage = `openai-agent: an ACP agent on stdin and stdout for any Chat Completions endpoint

  --demo      talk to a built-in endpoint that needs no key and no network
  --version   print the version
  --help      print this

Environment: OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL OPENAI_SYSTEM_PROMPT OPENAI_MAX_TOKENS OPENAI_TEMPERATURE
  OPENAI_API_VERSION OPENAI_HEADERS OPENAI_VISION OPENAI_MAX_RETRIES OPENAI_TIMEOUT_SEC OPENAI_SESSION_DIR
`

/** How long answers may still go out after the end of the input or a signal. */
const graceMs = 400
/** Whatever still holds the process then is not waited for. */
const deadlineMs = 900

/** Runs the agent until its input ends or a signal comes, and says how to exit. */
export async function runOpenAiAgent(argv: readonly string[], env: Environment): Promise<number> {
  const unknown = argv.find((argument) => !['--demo', '--version', '--help'].includes(argument))
  if (unknown !== undefined) return refuse([`unknown argument ${JSON.stringify(unknown)}; see --help`])
  if (argv.includes('--help')) return print(usage)
  if (argv.includes('--version')) return print(`${packageVersion()}\n`)
  if (!argv.includes('--demo')) return start(env, (config) => openDispatcher(config, env))
  const demo = await startDemo()
  try {
    return await start({ ...env, ...demoEnvironment(demo.url) }, () => new Agent())
  } finally {
    await demo.close()
  }
}

async function start(env: Environment, open: (config: Config) => Dispatcher): Promise<number> {
  const read = readConfig(env)
  if ('problems' in read) return refuse(read.problems)
  const store = openStore(read.config)
  if (store === 'unusable') return 2
  const dispatcher = open(read.config)
  try {
    await serve(new OpenAiAgent({ config: read.config, dispatcher, store, log, version: packageVersion() }))
    return 0
  } finally {
    await dispatcher.destroy()
  }
}

async function serve(agent: OpenAiAgent): Promise<void> {
  const stop = () => {
    setTimeout(() => process.exit(0), deadlineMs).unref()
    agent.cancelAll()
  }
  const stdio = openStdio(process.stdin, process.stdout, graceMs, stop)
  const connection = toApp(agent).connect(stdio.stream)
  const end = () => {
    stop()
    void stdio.settled(graceMs).then(() => connection.close())
  }
  process.once('SIGTERM', end).once('SIGINT', end)
  // The reader of our answers is gone: there is nobody left to serve.
  process.stdout.on('error', () => connection.close())
  try {
    await connection.closed
  } finally {
    process.off('SIGTERM', end).off('SIGINT', end)
    process.stdin.destroy()
    await agent.closeAll()
  }
}

/** The demo wins over whatever else is configured, and gets no credential. */
function demoEnvironment(url: string): Environment {
  const off = { OPENAI_API_KEY: '', OPENAI_API_VERSION: '', OPENAI_HEADERS: '' }
  return { ...off, OPENAI_BASE_URL: url, OPENAI_MODEL: demoModel }
}

function openStore(config: Config): SessionStore | undefined | 'unusable' {
  if (config.sessionDir === undefined) return undefined
  try {
    return new SessionStore(config.sessionDir, log)
  } catch (error) {
    refuse([`OPENAI_SESSION_DIR cannot be used as a folder: ${reasonOf(error, (text) => text)}`])
    return 'unusable'
  }
}

/** Silence is watched per request, so the client's own timeouts are off. */
function openDispatcher(config: Config, env: Environment): Dispatcher {
  return new EnvHttpProxyAgent({
    httpProxy: env['http_proxy'] ?? env['HTTP_PROXY'] ?? '',
    httpsProxy: env['https_proxy'] ?? env['HTTPS_PROXY'] ?? '',
    noProxy: env['no_proxy'] ?? env['NO_PROXY'] ?? '',
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: config.timeoutMs },
  })
}

function refuse(problems: readonly string[]): number {
  for (const problem of problems) log(problem)
  return 2
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

function packageVersion(): string {
  return JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')).version
}

function isProgram(): boolean {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
}

if (isProgram()) process.exit(await runOpenAiAgent(process.argv.slice(2), process.env))
