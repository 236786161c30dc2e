/** What players ask for. A plan is a function from the number of a request to its pool, session and params. */

/** Quick and slow answers, short and long ones, with sessions, without, and with updates. */
export function mixedPlan(random, pools) {
  const pool = random.pick(pools)
  return () => ({
    pool,
    inSession: random.fraction() < 0.5,
    params: {
      waitMs: random.fraction() < 0.3 ? random.between(1, 60) : 0,
      answerBytes: random.fraction() < 0.05 ? random.between(1_000, 100_000) : undefined,
      note: random.fraction() < 0.3,
    },
  })
}

/** Every request alike. */
export const steadyPlan =
  (pool, params = {}) =>
  () => ({ pool, inSession: false, params })
