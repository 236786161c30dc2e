/** A promise of the contract that the kernel has broken, as an error that names the promise. */
export type Promised =
  | 'answered once'
  | 'bytes unchanged'
  | 'nobody else sees it'
  | 'order kept'
  | 'bounded'
  | 'tables tidy'
  | 'questions answered'
  | 'nothing left'
  | 'goes on'
  | 'justified'
  | 'actions sensible'
  | 'rights kept'
  | 'no crash'

export class Violation extends Error {
  readonly promised: Promised

  constructor(promised: Promised, what: string, cause?: unknown) {
    super(`${promised}: ${what}`, { cause })
    this.promised = promised
  }
}

export function demand(isKept: boolean, promised: Promised, what: string | (() => string)): asserts isKept {
  if (!isKept) throw new Violation(promised, typeof what === 'string' ? what : what())
}
