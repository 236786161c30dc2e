/** `npm run simulate -- --kept`: worlds of sessions that outlive their clients, seed after seed until one fails. */
import { type KeptOutcome, KeptWorld } from './kept-world.ts'
import { Violation } from './violation.ts'

export interface KeptTally {
  readonly seeds: number
  readonly events: number
  readonly requests: number
  readonly words: number
  readonly restarts: number
  readonly seconds: number
  readonly counts: ReadonlyMap<string, number>
  readonly failed: { readonly seed: number; readonly what: string } | undefined
}

const STORY_LINES = 200

export function simulateKept(seed: number, events: number): KeptOutcome {
  return new KeptWorld(seed).run(events)
}

/** `minutes` above 0: goes on for so long, whatever `seeds` says. */
export function runKeptSeeds(first: number, seeds: number, events: number, minutes = 0): KeptTally {
  const startedMs = performance.now()
  const isOver = (done: number): boolean =>
    minutes > 0 ? performance.now() - startedMs > minutes * 60_000 : done >= seeds
  const sums = { events: 0, requests: 0, words: 0, restarts: 0 }
  const counts = new Map<string, number>()
  let failed: KeptTally['failed']
  let done = 0
  for (; !isOver(done) && failed === undefined; done++) {
    try {
      const outcome = simulateKept(first + done, events)
      for (const key of ['events', 'requests', 'words', 'restarts'] as const) sums[key] += outcome[key]
      for (const [what, count] of outcome.counts) counts.set(what, (counts.get(what) ?? 0) + count)
    } catch (error) {
      failed = { seed: first + done, what: error instanceof Violation ? error.message : String((error as Error).stack) }
    }
  }
  return { seeds: done, ...sums, seconds: (performance.now() - startedMs) / 1_000, counts, failed }
}

/** What happened before the violation, for a person. */
export function storyOf(seed: number, events: number): string {
  const world = new KeptWorld(seed, true)
  try {
    world.run(events)
  } catch {
    return world.story!.slice(-STORY_LINES).join('\n')
  }
  return ''
}

export function formatKept({ seeds, events, requests, words, restarts, seconds, failed }: KeptTally): string {
  const found = failed === undefined ? 'no violation' : `a violation in seed ${failed.seed}: ${failed.what}`
  return `${seeds} worlds of kept sessions, ${events} events, ${requests} requests, ${words} lines said, ${restarts} restarts in ${seconds.toFixed(1)} s: ${found}`
}
