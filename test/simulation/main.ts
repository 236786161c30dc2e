/**
 * `npm run simulate -- --seed N --events M`: runs the kernel in simulated worlds and says what it found.
 *
 * Without a seed it takes fresh ones and prints the first. A violation is shrunk and printed as the command that repeats it.
 */
import { isAioSeed } from './scenario.ts'
import { shrink } from './shrink.ts'
import { type Outcome, type Plan, simulate } from './simulate.ts'

export interface Order {
  readonly seed: number
  readonly seeds: number
  readonly events: number
  readonly steps: readonly number[] | undefined
  /** 0: no bound. */
  readonly minutes: number
  /** Only worlds with agents; the other seeds are passed over. */
  readonly isAio?: boolean
}

const STORY_LINES = 80

export interface Tally {
  readonly seeds: number
  readonly events: number
  readonly requests: number
  readonly seconds: number
  readonly reasons: ReadonlyMap<string, number>
  readonly failed: { readonly plan: Plan; readonly outcome: Outcome } | undefined
}

/** Runs seed after seed until one fails. */
export async function runSeeds(order: Order, note: (tally: Tally) => void = () => {}): Promise<Tally> {
  const startedMs = performance.now()
  const reasons = new Map<string, number>()
  let events = 0
  let requests = 0
  const tallyOf = (seeds: number, failed: Tally['failed']): Tally => ({
    seeds,
    events,
    requests,
    seconds: (performance.now() - startedMs) / 1000,
    reasons,
    failed,
  })
  let seed = order.seed
  for (let i = 0; ; i++, seed++) {
    const isOver = order.minutes > 0 ? performance.now() - startedMs > order.minutes * 60_000 : i >= order.seeds
    if (isOver) return tallyOf(i, undefined)
    while (order.isAio && !isAioSeed(seed)) seed++
    const { steps } = order
    const plan = { seed, events: order.events, ...(steps === undefined ? {} : { steps }) }
    const outcome = await simulate(plan)
    events += outcome.events
    requests += outcome.requests
    for (const [reason, count] of outcome.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + count)
    if (outcome.violation !== undefined) return tallyOf(i + 1, { plan, outcome })
    if (i % 100 === 99) note(tallyOf(i + 1, undefined))
  }
}

/** What a person needs to know of a violation: what it is, how to repeat it, what happened. */
export async function reportFailure(plan: Plan, outcome: Outcome): Promise<string> {
  const small = await shrink(plan, outcome)
  const told = await simulate({ ...small, isTold: true })
  const command = `npm run simulate -- --seed ${small.seed} --events ${small.events} --steps ${formatSteps(small.steps ?? [])}`
  return [
    'what happened:',
    ...told.story.filter(isTelling).slice(-STORY_LINES).map(shorten),
    '',
    shorten(`VIOLATION in seed ${plan.seed}: ${told.violation?.message ?? outcome.violation?.message}`),
    `to repeat it (${small.steps?.length} steps of ${outcome.steps}): ${command}`,
    ...(told.violation?.cause instanceof Error ? [told.violation.cause.stack ?? ''] : []),
  ].join('\n')
}

/** A tick of which nothing came tells nothing. */
function isTelling(line: string, index: number, story: readonly string[]): boolean {
  return !line.endsWith('{"type":"tick"}') || story[index + 1]?.startsWith(' ') === true
}

/** Padding tells nothing. */
function shorten(text: string): string {
  return text.replace(/([xyz])\1{9,}/g, (run) => `${run[0]}(${run.length})`)
}

/** `3,7-9` for 3, 7, 8 and 9. */
export function formatSteps(steps: readonly number[]): string {
  const ranges: string[] = []
  for (let i = 0; i < steps.length; i++) {
    const first = steps[i]!
    while (steps[i + 1] === steps[i]! + 1) i++
    ranges.push(first === steps[i] ? String(first) : `${first}-${steps[i]}`)
  }
  return ranges.length === 0 ? 'none' : ranges.join(',')
}

export function parseSteps(text: string): readonly number[] {
  if (text === 'none') return []
  return text.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return Array.from({ length: last! - first! + 1 }, (_, index) => first! + index)
  })
}

export function formatTally({ seeds, events, requests, seconds, failed }: Tally): string {
  const rate = Math.round(events / Math.max(seconds, 0.001))
  const found = failed === undefined ? 'no violation' : 'a violation'
  return `${seeds} seeds, ${events} events, ${requests} requests in ${seconds.toFixed(1)} s (${rate} events/s): ${found}`
}
