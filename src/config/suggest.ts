/**
 * Finds the word somebody probably meant. Pure; the caller says which words exist.
 *
 * Spelling conventions do not count as mistakes: `maxInputBuffer` is as near to `max_input_buffer` as can be.
 */

/** The nearest of `words`, or nothing when none is near enough to be worth saying. */
export function suggest(word: string, words: readonly string[]): string | undefined {
  if (word.length > MAX_WORD_CHARS) return undefined
  const bare = strip(word)
  const ranked = words.map((candidate) => ({ candidate, distance: distanceBetween(bare, strip(candidate)) }))
  ranked.sort((a, b) => a.distance - b.distance)
  const best = ranked[0]
  if (best === undefined) return undefined
  return best.distance <= tolerance(bare, strip(best.candidate)) ? best.candidate : undefined
}

const MAX_WORD_CHARS = 64

function strip(word: string): string {
  return word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

function tolerance(a: string, b: string): number {
  return Math.floor(Math.max(a.length, b.length) / 3)
}

/** Edits between two words, where swapping two neighbours is one edit. */
function distanceBetween(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const changed = last[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1)
      const swapped = areSwapped(a, b, row, column) ? beforeLast[column - 2]! + 1 : Number.POSITIVE_INFINITY
      current.push(Math.min(changed, last[column]! + 1, current[column - 1]! + 1, swapped))
    }
    beforeLast = last
    last = current
  }
  return last[b.length]!
}

function areSwapped(a: string, b: string, row: number, column: number): boolean {
  return row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
}
