/**
 * What is fuzzed inside the process: the envelope reader, the line splitter, the configuration. Each target judges one input
 * and says what is wrong with the answer, or nothing.
 */
import { parseConfig } from '../../src/config/read.ts'
import { formatProblems } from '../../src/config/report.ts'
import { Envelope } from '../../src/wire/envelope.ts'
import { FIELD } from '../../src/wire/fields.ts'
import { LineSplitter } from '../../src/wire/frame.ts'
import { Chance } from '../simulation/chance.ts'
import { drawConfig } from './config-grammar.ts'
import { damage, drawMessage } from './grammar.ts'
import { judge } from './reference.ts'

export interface Target {
  readonly name: 'envelope' | 'framing' | 'config'
  /** An input as latin1; `kept` are inputs of the corpus to begin from. */
  draw(chance: Chance, kept: readonly string[]): string
  judge(input: string, chance: Chance): string | undefined
}

const envelope = new Envelope()
const NAMES = ['notJson', 'bad', 'request', 'notification', 'response'] as const

const ENVELOPE: Target = {
  name: 'envelope',
  draw: (chance, kept) => (kept.length > 0 && chance.is(0.1) ? damage(chance, chance.pick(kept)) : drawMessage(chance)),
  judge: (input, chance) => {
    // A line is never alone in its chunk.
    const before = 'x'.repeat(chance.int(20))
    const bytes = Buffer.from(`${before}${input}\n{"id":1}`, 'latin1')
    const start = before.length
    const line = bytes.subarray(start, start + input.length)
    if (line.includes(10)) return undefined
    const shape = NAMES[envelope.read(bytes, start, start + input.length)]
    const expected = judge(line)
    if (shape !== expected.shape) return `it is ${expected.shape}, read as ${shape}`
    if (shape === 'notJson' || shape === 'bad') return undefined
    return compareFields(expected)
  },
}

function compareFields({ id, idRaw, method, sessionId }: ReturnType<typeof judge>): string | undefined {
  if (typeof method === 'string' && envelope.text(FIELD.method) !== method) return 'the method is read wrongly'
  if (typeof sessionId === 'string' && envelope.text(FIELD.sessionId) !== sessionId)
    return 'the session is read wrongly'
  if (id === undefined || id === null) return undefined
  if (envelope.spelling(FIELD.id).toString() !== idRaw) return 'the id is spelled otherwise'
  const key = envelope.key(FIELD.id)
  const isSame = typeof key === 'bigint' ? Number(key) === id : Object.is(key, id) || key === id
  return isSame ? undefined : `the id is ${String(id)}, read as ${String(key)}`
}

const FRAMING: Target = {
  name: 'framing',
  draw: (chance, kept) => {
    if (kept.length > 0 && chance.is(0.1)) return damage(chance, chance.pick(kept))
    const lines = Array.from({ length: chance.int(6) }, () =>
      'a'.repeat(chance.is(0.8) ? chance.int(12) : chance.int(80)),
    )
    const text = lines.join(chance.is(0.9) ? '\n' : '\r\n')
    return chance.is(0.3) ? damage(chance, text) : text
  },
  judge: (input, chance) => {
    const maxLineBytes = chance.pick([0, 1, 5, 20, 1_000])
    const got = split(input, maxLineBytes, chance)
    const expected = splitSlowly(input, maxLineBytes)
    return JSON.stringify(got) === JSON.stringify(expected)
      ? undefined
      : `expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`
  },
}

interface Lines {
  readonly lines: string[]
  readonly isTooLong: boolean
}

/** In chunks of any size, with stops in the middle. */
function split(input: string, maxLineBytes: number, chance: Chance): Lines {
  const splitter = new LineSplitter(maxLineBytes)
  const lines: string[] = []
  const sink = (bytes: Buffer, start: number, end: number): boolean => {
    lines.push(bytes.toString('latin1', start, end))
    return chance.is(0.7)
  }
  let rest = input
  while (rest !== '' && !splitter.overflowed) {
    const length = chance.is(0.5) ? rest.length : chance.between(1, rest.length)
    const chunk = Buffer.from(rest.slice(0, length), 'latin1')
    rest = rest.slice(length)
    for (let from = 0; from < chunk.length && !splitter.overflowed; ) from = splitter.push(chunk, from, sink)
  }
  if (!splitter.overflowed) splitter.finish(sink)
  return { lines, isTooLong: splitter.overflowed }
}

function splitSlowly(input: string, maxLineBytes: number): Lines {
  const all = input.split('\n')
  if (all.at(-1) === '') all.pop()
  const long = all.findIndex((line) => line.length > maxLineBytes)
  return { lines: long === -1 ? all : all.slice(0, long), isTooLong: long !== -1 }
}

const SECRET = 'S3CR3T'
const OPTIONS = { environment: { HOME: '/home/ada', SET: SECRET }, cwd: '/srv' }

const CONFIG: Target = {
  name: 'config',
  draw: (chance, kept) =>
    kept.length > 0 && chance.is(0.2) ? damage(chance, chance.pick(kept)) : drawConfig(chance, SECRET),
  judge: (input) => {
    const text = Buffer.from(input, 'latin1').toString()
    const reading = parseConfig('stdio-bus.json', text, OPTIONS)
    if (reading.ok) return undefined
    if (reading.problems.length === 0) return 'it is refused without a problem'
    const vague = reading.problems.find(
      ({ file, line, found, allowed }) => file === '' || line < 0 || found === '' || allowed === '',
    )
    if (vague !== undefined) return `a problem says too little: ${JSON.stringify(vague)}`
    const shown = formatProblems(reading.problems)
    if (shown.includes(SECRET)) return `a secret is shown: ${shown}`
    const isStable = formatProblems(parseAgain(text)) === shown
    return isStable ? undefined : 'the same file is judged differently'
  },
}

function parseAgain(text: string): Parameters<typeof formatProblems>[0] {
  const reading = parseConfig('stdio-bus.json', text, OPTIONS)
  return reading.ok ? [] : reading.problems
}

export const TARGETS: readonly Target[] = [ENVELOPE, FRAMING, CONFIG]

export interface Failure {
  readonly input: string
  readonly what: string
  readonly number: number
}

/** Judges the corpus and then `count` new inputs; the first failure ends it. */
export function fuzz(target: Target, seed: number, count: number, kept: readonly string[]): Failure | undefined {
  const chance = new Chance(seed)
  for (let number = 0; number < kept.length + count; number++) {
    chance.reseed(seed, number)
    const input = kept[number] ?? target.draw(chance, kept)
    const what = judgeSafely(target, input, chance)
    if (what !== undefined) return { input: shorten(target, input, seed, number), what, number }
  }
  return undefined
}

function judgeSafely(target: Target, input: string, chance: Chance): string | undefined {
  try {
    return target.judge(input, chance)
  } catch (error) {
    return `it threw ${(error as Error).stack}`
  }
}

/** Leaves out what is not needed for the failure. */
function shorten(target: Target, input: string, seed: number, number: number): string {
  const fails = (text: string): boolean => judgeSafely(target, text, new Chance(seed, number)) !== undefined
  let short = input
  if (!fails(short)) return input
  for (let size = Math.ceil(short.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < short.length; ) {
      const fewer = short.slice(0, at) + short.slice(at + size)
      if (fails(fewer)) short = fewer
      else at += size
    }
  }
  return short
}
