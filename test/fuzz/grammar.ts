/**
 * Makes inputs that are almost right: JSON by its grammar with the names that matter, and then damage.
 *
 * Texts are latin1: one character is one byte, so that damage can leave UTF-8 behind.
 */
import type { Chance } from '../simulation/chance.ts'

const KEYS = ['jsonrpc', 'id', 'method', 'params', 'result', 'error', 'sessionId', 'pool', 'trace_id', '_meta', 'x', '']
const SCALARS = [
  ...['0', '1', '-1', '5', '007', '1.0', '1e3', '-0', '12345678901234567890', '1e999', '.5', '+1', '0x1'],
  ...['true', 'false', 'null', 'nul', 'NaN', '""', '"a"', '"\\u0061"', '"\\ud800"', '"\\ud83d\\ude00"', '"\xc3\xa9"'],
  ...['"\xf0\x9f\x98\x80"', '"\xff"', '"\xed\xa0\x80"', '"\xc0\x80"', '"\t"', '"\\x"', '"\\u12"', '"sess"', '{}', '[]'],
]
const MAX_DEPTH = 6

export function drawMessage(chance: Chance): string {
  const text = chance.is(0.95) ? drawObject(chance, 0) : drawValue(chance, 0)
  return chance.is(0.45) ? damage(chance, text) : text
}

function drawObject(chance: Chance, depth: number): string {
  const members: string[] = []
  for (let count = chance.int(depth === 0 ? 8 : 4); count > 0; count--) {
    members.push(`${space(chance)}"${drawKey(chance)}"${space(chance)}:${drawValue(chance, depth + 1)}`)
  }
  return `{${members.join(',')}${space(chance)}}`
}

function drawKey(chance: Chance): string {
  const key = chance.pick(KEYS)
  if (key === '' || chance.is(0.9)) return key
  const at = chance.int(key.length)
  const code = key.charCodeAt(at).toString(16).padStart(4, '0')
  return `${key.slice(0, at)}\\u${code}${key.slice(at + 1)}`
}

function drawValue(chance: Chance, depth: number): string {
  const roll = chance.next()
  if (depth >= MAX_DEPTH || roll < 0.65) return `${space(chance)}${drawScalar(chance)}${space(chance)}`
  if (roll < 0.9) return drawObject(chance, depth)
  const items = Array.from({ length: chance.int(4) }, () => drawValue(chance, depth + 1))
  return `[${items.join(',')}]`
}

function drawScalar(chance: Chance): string {
  if (chance.is(0.02)) return `"${'k'.repeat(1_020 + chance.int(10))}"`
  // Mostly the right ones: a broken scalar spoils the whole message.
  return chance.is(0.97) ? chance.pick(GOOD) : chance.pick(SCALARS)
}

const GOOD = SCALARS.filter((text) => {
  try {
    JSON.parse(text)
    return !/[\x80-\xff]/.test(text) || /\xc3\xa9|\xf0\x9f/.test(text)
  } catch {
    return false
  }
})

function space(chance: Chance): string {
  return chance.is(0.9) ? '' : chance.pick([' ', '  ', '\t', '\r', ' \t '])
}

/** Some bytes are changed, lost, doubled or moved. */
export function damage(chance: Chance, text: string): string {
  let damaged = text
  for (let count = chance.between(1, 3); count > 0; count--) {
    const at = chance.int(damaged.length + 1)
    damaged = chance.pick(DAMAGES)(chance, damaged, at)
  }
  return damaged
}

type Damage = (chance: Chance, text: string, at: number) => string

const DAMAGES: readonly Damage[] = [
  (chance, text, at) => `${text.slice(0, at)}${String.fromCharCode(chance.int(256))}${text.slice(at + 1)}`,
  (chance, text, at) => `${text.slice(0, at)}${chance.pick(['"', '\\', '{', '}', ',', ':', '\xff'])}${text.slice(at)}`,
  (chance, text, at) => text.slice(0, at) + text.slice(at + chance.between(1, 8)),
  (_chance, text, at) => text.slice(0, at),
  (chance, text, at) => text.slice(0, at) + text.slice(Math.max(0, at - chance.between(1, 12))),
]
