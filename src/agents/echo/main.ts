#!/usr/bin/env node
/**
 * The echo agent: the smallest worker, for a first success and for trying a bus.
 *
 * It needs no package and opens nothing. A full stdout holds its input. Exit codes: 0 a clean end, 2 a wrong argument.
 */
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { LineSplitter } from '../../wire/frame.ts'
import { CODE, errorLine } from '../../wire/jsonrpc.ts'
import { Echo, type Line } from './answers.ts'

const maxLineBytes = 64 * 1024 * 1024
const notJson = errorLine('null', { code: CODE.parseError, message: 'this line is not a JSON object' }).toString()

/** Echoes lines from stdin to stdout until the input ends or a signal comes. */
export async function runEchoAgent(argv: readonly string[]): Promise<number> {
  if (argv.length > 0) {
    process.stderr.write('echo: takes no arguments\n')
    return 2
  }
  const stop = () => process.stdin.destroy()
  process.once('SIGTERM', stop).once('SIGINT', stop)
  process.stdout.once('error', stop)
  try {
    await serve()
    return 0
  } finally {
    process.off('SIGTERM', stop).off('SIGINT', stop)
  }
}

async function serve(): Promise<void> {
  const echo = new Echo()
  const splitter = new LineSplitter(maxLineBytes)
  let answers = ''
  const take = (bytes: Buffer, start: number, end: number): boolean => {
    answers += answersTo(echo, bytes.toString('utf8', start, end))
    return true
  }
  const flush = async (): Promise<void> => {
    const text = answers
    answers = ''
    if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain').catch(() => {})
  }
  try {
    for await (const chunk of process.stdin) {
      splitter.push(chunk as Buffer, 0, take)
      await flush()
      if (splitter.overflowed) throw new Error(`a line of more than ${maxLineBytes} bytes`)
    }
    splitter.finish(take)
    await flush()
  } catch (error) {
    if (!isDestroyed(error)) throw error
  }
}

function answersTo(echo: Echo, text: string): string {
  if (text.trim() === '') return ''
  const line = parse(text)
  if (line === undefined) return notJson
  return echo.say(line)
}

function parse(text: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Line) : undefined
  } catch {
    return undefined
  }
}

/** How the input looks after a signal. */
function isDestroyed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE'
}

function isProgram(): boolean {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
}

if (isProgram()) process.exitCode = await runEchoAgent(process.argv.slice(2))
