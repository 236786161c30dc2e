/**
 * `pattern` of a schema, matched in time that grows with the text and no faster.
 *
 * The expressions come from servers that nobody trusts, and the browser's own engine can be kept busy for years by a short one. So
 * they are compiled to states that are all followed at once. What that cannot do (looking around, references back) is left to
 * the server and said to be: `undefined`.
 */

type Test = (character: string) => boolean

type State =
  | { readonly kind: 'character'; readonly test: Test; next: number }
  | { readonly kind: 'split'; next: number; other: number }
  | { readonly kind: 'start' | 'end'; next: number }
  | { readonly kind: 'match' }

const MAX_PATTERN_CHARS = 1_000
const MAX_STATES = 2_000
export const MAX_EFFORT = 200_000
const MAX_REPEATS = 500
const MAX_DEPTH = 50

const BEYOND = /^\\(?:[bBk1-9]|c)/
const ESCAPE = /^\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|u\{[\da-fA-F]{1,6}\}|[pP]\{[\w=]{1,60}\}|0(?!\d)|[^xucbBkpP\d])/
const QUANTIFIER = /^(?:([*+?])|\{(\d{1,4})(?:(,)(\d{1,4})?)?\})\??/
const CLASS = /^\[\^?(?:\\.|[^\]\\])*\]/s

class NotHere extends Error {}

/** So many states may still be looked at, for all expressions of a form together. */
export interface Effort {
  steps: number
}

/** Whether the text fits; undefined: that cannot be told here. */
export function fitsPattern(
  text: string,
  pattern: string,
  effort: Effort = { steps: MAX_EFFORT },
): boolean | undefined {
  if (pattern.length > MAX_PATTERN_CHARS || effort.steps <= 0) return undefined
  try {
    const { states, first } = new Compiler(pattern).compile()
    effort.steps -= states.length
    return run(states, first, { text: [...text], effort })
  } catch (error) {
    if (error instanceof NotHere || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Reads from the left and builds from the right: every part is told what comes behind it. */
class Compiler {
  readonly #pattern: string
  readonly #states: State[] = [{ kind: 'match' }]
  #at = 0
  #depth = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  compile(): { readonly states: readonly State[]; readonly first: number } {
    const build = this.#alternatives()
    if (this.#at < this.#pattern.length) throw new NotHere()
    return { states: this.#states, first: build(0) }
  }

  #alternatives(): Build {
    if (++this.#depth > MAX_DEPTH) throw new NotHere()
    const choices = [this.#sequence()]
    while (this.#take('|')) choices.push(this.#sequence())
    this.#depth--
    return (next) => choices.map((build) => build(next)).reduce((other, choice) => this.#add(split(choice, other)))
  }

  #sequence(): Build {
    const parts: Build[] = []
    while (this.#at < this.#pattern.length && !/^[|)]/.test(this.#rest())) parts.push(this.#part())
    return (next) => parts.reduceRight((behind, build) => build(behind), next)
  }

  #part(): Build {
    if (this.#take('^')) return (next) => this.#add({ kind: 'start', next })
    if (this.#take('$')) return (next) => this.#add({ kind: 'end', next })
    return this.#repeated(this.#take('(') ? this.#group() : this.#character())
  }

  #group(): Build {
    if (this.#rest().startsWith('?')) {
      const head = /^\?(?::|<[A-Za-z_$][\w$]*>)/.exec(this.#rest())
      if (head === null) throw new NotHere()
      this.#at += head[0].length
    }
    const build = this.#alternatives()
    if (!this.#take(')')) throw new NotHere()
    return build
  }

  #character(): Build {
    const test = testOf(this.#atom())
    return (next) => this.#add({ kind: 'character', test, next })
  }

  #atom(): string {
    const rest = this.#rest()
    if (BEYOND.test(rest)) throw new NotHere()
    const found = CLASS.exec(rest) ?? ESCAPE.exec(rest)
    const atom = found === null ? String.fromCodePoint(rest.codePointAt(0)!) : found[0]
    if (found === null && /^[\\()[\]{}*+?|]$/.test(atom)) throw new NotHere()
    this.#at += atom.length
    return atom
  }

  #repeated(build: Build): Build {
    const found = QUANTIFIER.exec(this.#rest())
    if (found === null) return build
    this.#at += found[0].length
    const [, sign, from, isRange, to] = found
    const least = sign === undefined ? Number(from) : sign === '+' ? 1 : 0
    const most = sign === '?' ? 1 : sign !== undefined || (isRange && to === undefined) ? undefined : Number(to ?? from)
    if (least > MAX_REPEATS || (most ?? 0) > MAX_REPEATS || (most ?? least) < least) throw new NotHere()
    return (next) => this.#times(build, least, most, next)
  }

  #times(build: Build, least: number, most: number | undefined, next: number): number {
    let at = next
    if (most === undefined) {
      const loop = { kind: 'split', next: 0, other: next } satisfies State
      at = this.#add(loop)
      loop.next = build(at)
    } else for (let count = most; count > least; count--) at = this.#add(split(build(at), next))
    for (let count = 0; count < least; count++) at = build(at)
    return at
  }

  #add(state: State): number {
    if (this.#states.length >= MAX_STATES) throw new NotHere()
    return this.#states.push(state) - 1
  }

  #take(character: string): boolean {
    if (this.#pattern[this.#at] !== character) return false
    this.#at++
    return true
  }

  #rest(): string {
    return this.#pattern.slice(this.#at)
  }
}

type Build = (next: number) => number

function split(next: number, other: number): State {
  return { kind: 'split', next, other }
}

/** One character alone: that the browser's engine may judge. */
function testOf(atom: string): Test {
  const single = atom.length === 1 && !/[.\\[]/.test(atom) ? undefined : expressionOf(atom)
  return single === undefined ? (character) => character === atom : (character) => single.test(character)
}

function expressionOf(atom: string): RegExp {
  try {
    return new RegExp(`^(?:${atom})$`, 'u')
  } catch {
    return new RegExp(`^(?:${atom})$`)
  }
}

function run(
  states: readonly State[],
  first: number,
  { text, effort }: { readonly text: readonly string[]; readonly effort: Effort },
): boolean | undefined {
  let present = new Set<number>()
  for (let at = 0; at <= text.length; at++) {
    const reached = new Set<number>()
    const open = [...present, first]
    const following = new Set<number>()
    while (open.length > 0) {
      const index = open.pop()!
      if (reached.has(index)) continue
      reached.add(index)
      if (--effort.steps < 0) return undefined
      const state = states[index]!
      if (state.kind === 'match') return true
      if (state.kind === 'split') open.push(state.next, state.other)
      else if (state.kind === 'character') {
        if (at < text.length && state.test(text[at]!)) following.add(state.next)
      } else if (at === (state.kind === 'start' ? 0 : text.length)) open.push(state.next)
    }
    present = following
  }
  return false
}
