/**
 * Whether a URI can have come from a template (RFC 6570), as far as it takes to find whose it is (contract 13.7).
 *
 * The literal parts must stand in the URI in their order, the first at its beginning and the last at its end; what a plain
 * variable stands for holds no slash. Templates that can fit in many ways, and members that have very many of them, are
 * given up after some trials: no URI costs more than that.
 */
import { BOUNDS } from './spec.ts'

const MAX_PARTS = 64
/** Of one member for one URI. */
const MAX_TRIALS = 1_000
const SLASH = '/'

/** What may still be tried for one URI at one member. */
export class Trials {
  #left = MAX_TRIALS

  /** False: it is given up. */
  take(): boolean {
    this.#left -= 1
    return this.#left >= 0
  }
}

interface Part {
  readonly literal: string
  /** What stands before the literal, where a variable does: anything, or what has no slash. */
  readonly gap: 'anything' | 'segment' | undefined
}

export class UriTemplate {
  readonly #parts: readonly Part[]

  constructor(template: string) {
    this.#parts = partsOf(template)
  }

  matches(uri: string, trials: Trials = new Trials()): boolean {
    return this.#parts.length > 0 && uri.length <= BOUNDS.uriLength && this.#matchesFrom(0, { uri, from: 0, trials })
  }

  #matchesFrom(index: number, { uri, from, trials }: { uri: string; from: number; trials: Trials }): boolean {
    const part = this.#parts[index]
    if (part === undefined) return from === uri.length
    const { literal, gap } = part
    const goOn = (at: number): boolean => this.#matchesFrom(index + 1, { uri, from: at + literal.length, trials })
    if (gap === undefined) return uri.startsWith(literal, from) && goOn(from)
    const slash = gap === 'segment' ? uri.indexOf(SLASH, from) : -1
    const last = slash === -1 ? uri.length : slash
    // The last variable takes all that is left.
    if (literal === '') return last === uri.length && trials.take()
    for (let at = uri.indexOf(literal, from); at !== -1 && at <= last; at = uri.indexOf(literal, at + 1))
      if (!trials.take()) return false
      else if (goOn(at)) return true
    return false
  }
}

/** Operators other than none, and lists, bring slashes, dots and question marks of their own. */
const WIDE = /^\{[+#/?&.;]|\*\}$/

/** Of a template that is too long, or has too many parts, there are none: it matches nothing. */
function partsOf(template: string): readonly Part[] {
  const parts: Part[] = []
  if (template.length > BOUNDS.uriLength) return parts
  let gap: Part['gap']
  for (const piece of template.split(/(\{[^{}]*\})/)) {
    if (piece === '') continue
    if (piece.startsWith('{') && piece.endsWith('}')) {
      gap = gap === 'anything' || WIDE.test(piece) ? 'anything' : 'segment'
      continue
    }
    parts.push({ literal: piece, gap })
    gap = undefined
  }
  if (gap !== undefined) parts.push({ literal: '', gap })
  return parts.length > MAX_PARTS ? [] : parts
}
