/**
 * Generated mutants that change nothing anybody could see, each with the reason; they do not count.
 *
 * `line` is the source line as it stands, trimmed; `becomes` what stands in the place of the mutated part.
 */
export const EQUIVALENT = [
  {
    file: 'flow.ts',
    line: 'peer.isDirty = true',
    becomes: 'false',
    why: 'a peer that is listed twice is passed over the second time: its queue is with the system by then',
  },
  {
    file: 'restarts.ts',
    line: 'this.#stampsMs = this.#stampsMs.filter((stampMs) => stampMs > nowMs - limits.restartWindowMs)',
    becomes: '>=',
    why: 'a restart that is just leaving the window leaves it now, whether it is counted or not',
  },
]
