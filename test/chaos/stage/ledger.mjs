/**
 * The books of a scenario: every request that was sent ends in exactly one column, or it is lost.
 *
 * `closed` is for requests whose connection was closed where the contract says that this is the answer; a connection that
 * closes for no such reason leaves its requests lost. `abandoned` is for requests whose client left without waiting.
 */
export class Ledger {
  requests = 0
  answered = 0
  closed = 0
  abandoned = 0
  doubled = 0
  misdelivered = 0
  errors = {}

  get errorCount() {
    return Object.values(this.errors).reduce((sum, count) => sum + count, 0)
  }

  get lost() {
    return this.requests - this.answered - this.errorCount - this.closed - this.abandoned
  }

  failed(reason) {
    this.errors[reason] = (this.errors[reason] ?? 0) + 1
  }

  add({ requests, answered, closed, abandoned, doubled, misdelivered, errors }) {
    this.requests += requests
    this.answered += answered
    this.closed += closed
    this.abandoned += abandoned
    this.doubled += doubled
    this.misdelivered += misdelivered
    for (const [reason, count] of Object.entries(errors)) this.errors[reason] = (this.errors[reason] ?? 0) + count
  }

  /** What must hold in every scenario. */
  violations() {
    return ['lost', 'doubled', 'misdelivered'].filter((name) => this[name] !== 0).map((name) => `${this[name]} ${name}`)
  }
}
