/**
 * Makes a failing run short: leaves out steps as long as the same promise stays broken (delta debugging).
 *
 * A step means the same whatever is left out before it, so most of a run can go.
 */
import { type Outcome, type Plan, simulate } from './simulate.ts'

const MAX_TRIES = 2_000

export async function shrink(plan: Plan, outcome: Outcome): Promise<Plan> {
  const promised = outcome.violation?.promised
  let tries = 0
  const fails = async (steps: readonly number[]): Promise<boolean> =>
    tries++ < MAX_TRIES && (await simulate({ ...plan, steps })).violation?.promised === promised
  let steps = plan.steps ?? Array.from({ length: outcome.steps }, (_, index) => index)
  if (!(await fails(steps))) return plan
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = Math.max(0, steps.length - size); at >= 0 && at < steps.length; at -= size) {
      const fewer = [...steps.slice(0, at), ...steps.slice(at + size)]
      if (await fails(fewer)) steps = fewer
      if (at > 0 && at < size) at = size
    }
  }
  return { ...plan, steps }
}
