/**
 * Which of many tools is meant: BM25 over what is told of them (contract 13.13).
 *
 * A document is a tool: its name, split where its words begin, counts three times; title, description, parameters and what
 * is said of them once. Plurals are folded. An exact name comes first; ties are settled by name. Pure; asks nobody.
 */
export interface SearchDocument {
  readonly name: string
  readonly title: string
  readonly description: string
  /** Names and descriptions of parameters. */
  readonly parameters: readonly string[]
}

const NAME_WEIGHT = 3
/** How soon a word that comes again counts no more, and how much long documents are held back. */
const SATURATION = 1.2
const LENGTH_SHARE = 0.75
const MAX_QUERY_WORDS = 64
/** Words of a question that say how it is asked, not what about: rare in short descriptions, they would count for much. */
const ASKING: ReadonlySet<string> = new Set(
  'a an and any are at be by can could do doe for from had has have how i in is it me my need of on or our please should some that the their there these this those to want was we were what when where which who whose will with would you your'.split(
    ' ',
  ),
)
const ASKING_SHARE = 0.1
/** Characters that are looked at: of one tool, of all tools together in equal shares, and of each in any case. */
const MAX_TEXT = 16_384
const MAX_ALL_TEXT = 4_194_304
const LEAST_TEXT = 256

export interface Matches {
  readonly total: number
  readonly names: readonly string[]
}

interface Posting {
  readonly document: number
  readonly weight: number
}

export class SearchIndex {
  readonly #names: readonly string[]
  readonly #byName = new Map<string, number>()
  readonly #lengths: Float64Array
  readonly #averageLength: number
  readonly #postings = new Map<string, Posting[]>()
  readonly #scores: Float64Array
  #sorted: readonly string[] | undefined

  constructor(documents: readonly SearchDocument[]) {
    this.#names = documents.map(({ name }) => name)
    this.#lengths = new Float64Array(documents.length)
    this.#scores = new Float64Array(documents.length)
    const share = Math.min(MAX_TEXT, Math.max(LEAST_TEXT, Math.floor(MAX_ALL_TEXT / documents.length)))
    let total = 0
    for (const [index, document] of documents.entries()) {
      this.#byName.set(document.name.toLowerCase(), index)
      for (const [word, weight] of weightsOf(document, share)) {
        const postings = this.#postings.get(word)
        if (postings === undefined) this.#postings.set(word, [{ document: index, weight }])
        else postings.push({ document: index, weight })
        this.#lengths[index]! += weight
      }
      total += this.#lengths[index]!
    }
    this.#averageLength = documents.length === 0 ? 1 : Math.max(total / documents.length, 1)
  }

  /** The best `count` of all that have to do with the query, from this one on, and how many there are; of an empty query all, by name. */
  find(query: string, from = 0, count = this.#names.length): Matches {
    const words = wordsOf(query).slice(0, MAX_QUERY_WORDS)
    if (words.length === 0) {
      this.#sorted ??= [...this.#names].sort(compare)
      return { total: this.#sorted.length, names: this.#sorted.slice(from, from + count) }
    }
    const scores = this.#scores.fill(0)
    for (const word of new Set(words)) this.#score(word, ASKING.has(word) ? ASKING_SHARE : 1, scores)
    const exact = this.#byName.get(query.trim().toLowerCase())
    if (exact !== undefined) scores[exact] = Number.POSITIVE_INFINITY
    const { total, best } = this.#select(scores, from + count)
    return { total, names: best.slice(from).map((document) => this.#names[document]!) }
  }

  /** The best so many, in order: what is wanted is far less than what is found. */
  #select(scores: Float64Array, most: number): { total: number; best: number[] } {
    const best: number[] = []
    let total = 0
    for (let document = 0; document < scores.length; document++) {
      if (scores[document] === 0) continue
      total++
      let at = best.length
      while (at > 0 && this.#isBetter(document, best[at - 1]!, scores)) at--
      if (at >= most) continue
      best.splice(at, 0, document)
      if (best.length > most) best.pop()
    }
    return { total, best }
  }

  #isBetter(one: number, other: number, scores: Float64Array): boolean {
    const more = scores[one]! - scores[other]!
    return more > 0 || (more === 0 && compare(this.#names[one]!, this.#names[other]!) < 0)
  }

  #score(word: string, share: number, scores: Float64Array): void {
    const postings = this.#postings.get(word)
    if (postings === undefined) return
    const count = this.#names.length
    const rarity = Math.log(1 + (count - postings.length + 0.5) / (postings.length + 0.5))
    for (const { document, weight } of postings) {
      const length = this.#lengths[document]! / this.#averageLength
      const damping = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
      scores[document]! += (share * rarity * weight * (SATURATION + 1)) / (weight + damping)
    }
  }
}

/** `share`: so much of what is said of it is looked at, beside its name. */
function weightsOf({ name, title, description, parameters }: SearchDocument, share: number): Map<string, number> {
  const weights = new Map<string, number>()
  let left = share + name.length
  const add = (text: string, weight: number): void => {
    const looked = text.slice(0, left)
    left -= looked.length
    if (looked !== '') for (const word of wordsOf(looked)) weights.set(word, (weights.get(word) ?? 0) + weight)
  }
  add(name, NAME_WEIGHT)
  // A title that only repeats the name tells nothing more.
  if (!name.endsWith(title)) add(title, 1)
  add(description, 1)
  for (const text of parameters) add(text, 1)
  return weights
}

/** Words in small letters: parted at what is no letter or digit and where a capital begins one; those are words whole, too: "GitHub". */
export function wordsOf(text: string): string[] {
  return (text.match(/[\p{L}\p{N}]+/gu) ?? []).flatMap((word) => {
    const parts = word
      .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
      .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
      .split(' ')
    return (parts.length === 1 ? parts : [...parts, word]).map((part) => singularOf(part.toLowerCase()))
  })
}

/** Only what is safe: "files" is "file", "queries" "query", "branches" "branch"; "status", "class" and "bus" stay. */
function singularOf(word: string): string {
  if (word.length < 4 || !word.endsWith('s') || /(?:ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`
  return /(?:x|ch|sh|ss|zz)es$/.test(word) ? word.slice(0, -2) : word.slice(0, -1)
}

function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

/** The names that look most like this one. */
export function nearestNames(name: string, names: readonly string[], count: number): string[] {
  const wanted = pairsOf(name)
  return names
    .map((each) => ({ each, likeness: likenessOf(wanted, pairsOf(each)) }))
    .sort((a, b) => (a.likeness === b.likeness ? compare(a.each, b.each) : b.likeness - a.likeness))
    .slice(0, count)
    .map(({ each }) => each)
}

const MAX_NAME = 256

function pairsOf(name: string): ReadonlySet<string> {
  const text = ` ${name.slice(0, MAX_NAME).toLowerCase()} `
  const pairs = new Set<string>()
  for (let at = 0; at + 1 < text.length; at++) pairs.add(text.slice(at, at + 2))
  return pairs
}

function likenessOf(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  let common = 0
  for (const pair of one) if (other.has(pair)) common++
  return (2 * common) / (one.size + other.size)
}
