/** Why a bus does not start. */

/** One mistake in a configuration. */
export interface ConfigProblem {
  /** `pools[0].command` */
  readonly path: string
  readonly found: string
  readonly allowed: string
  readonly suggestion?: string
}

/** The configuration has mistakes; all of them are told. */
export class BusConfigError extends Error {
  override readonly name = 'BusConfigError'
  readonly problems: readonly ConfigProblem[]

  constructor(message: string, problems: readonly ConfigProblem[]) {
    super(message)
    this.problems = problems
  }
}
