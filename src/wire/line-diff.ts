/**
 * What changed between two texts, line by line, with a few lines around each change.
 *
 * Texts that differ too much to be compared at once are shown as one text that replaced the other; nothing is left out.
 */

export type DiffLine =
  | { readonly kind: 'same' | 'added' | 'removed'; readonly text: string }
  /** Lines that are the same and not shown. */
  | { readonly kind: 'skipped'; readonly count: number }

const CONTEXT_LINES = 2
/** Cells of the table that compares them. */
const MAX_CELLS = 1_000_000

export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)]
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head++
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return shorten([
    ...old.slice(0, head).map(same),
    ...compare(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...old.slice(old.length - tail).map(same),
  ])
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n')
}

/** By the longest sequence of lines that both have. */
function compare(old: readonly string[], now: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text })
  const added = (text: string): DiffLine => ({ kind: 'added', text })
  if (old.length * now.length > MAX_CELLS) return [...old.map(removed), ...now.map(added)]
  const lengths = commonLengths(old, now)
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      lines.push({ kind: 'same', text: old[i]! })
      i++
      j++
    } else if (lengths[i + 1]![j]! >= lengths[i]![j + 1]!) lines.push(removed(old[i++]!))
    else lines.push(added(now[j++]!))
  }
  return [...lines, ...old.slice(i).map(removed), ...now.slice(j).map(added)]
}

/** How many lines the rests of both have in common, from each pair of lines on. */
function commonLengths(old: readonly string[], now: readonly string[]): Uint16Array[] {
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1))
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      lengths[i]![j] =
        old[i] === now[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!)
    }
  }
  return lengths
}

function shorten(lines: readonly DiffLine[]): DiffLine[] {
  const isNear = lines.map(() => false)
  for (const [index, { kind }] of lines.entries()) {
    if (kind === 'same') continue
    const last = Math.min(index + CONTEXT_LINES, lines.length - 1)
    for (let near = Math.max(index - CONTEXT_LINES, 0); near <= last; near++) isNear[near] = true
  }
  const shown: DiffLine[] = []
  let skipped = 0
  for (const [index, line] of lines.entries()) {
    if (!isNear[index]) {
      skipped++
      continue
    }
    if (skipped > 0) shown.push({ kind: 'skipped', count: skipped })
    skipped = 0
    shown.push(line)
  }
  return shown
}
