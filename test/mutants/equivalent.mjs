/**
 * Generated mutants that change nothing anybody could see, each with the reason; they do not count.
 *
 * `line` is the source line as it stands, trimmed; `becomes` what stands in the place of the mutated part.
 */
export const EQUIVALENT = []
