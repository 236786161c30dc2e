/** Which node takes a newcomer: the one with the least to do for each worker that is ready (contract 14.3). Pure. */

/** A node that has the pool, as it said last, and what we have sent there since. */
export interface Candidate {
  readonly node: string
  readonly ready: number
  readonly outstanding: number
  readonly streams: number
  readonly since: number
}

/** Undefined: no node has the pool. Where none is ready, one of them is asked to wait as it would for its own clients. */
export function chooseNode(candidates: readonly Candidate[], chance: () => number): string | undefined {
  const ready = candidates.filter((each) => each.ready > 0)
  const from = ready.length > 0 ? ready : candidates
  let best: Candidate[] = []
  let least = Number.POSITIVE_INFINITY
  for (const each of from) {
    const load = loadOf(each)
    if (load > least) continue
    if (load < least) best = []
    least = load
    best.push(each)
  }
  return best[Math.floor(chance() * best.length)]?.node
}

function loadOf({ ready, outstanding, streams, since }: Candidate): number {
  return (outstanding + streams + since) / Math.max(1, ready)
}
