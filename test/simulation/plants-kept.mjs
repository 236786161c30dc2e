/** Bugs in sessions that outlive their clients; found in the worlds of `kept-world.ts`. */
import { plant } from './plant.mjs'

const inKept = (...row) => ({ ...plant(...row), world: 'kept' })

export const PLANTS_OF_KEPT = [
  inKept(
    'two clients have turns of one session at once',
    'kept/turns.ts',
    'if (turn === undefined || (turn.client === route.client && !this.#isWaitedFor(kept))) return false',
    'return false',
  ),
  inKept(
    'a prompt that the agent repeats is told twice',
    'kept/turns.ts',
    'turn.unsaid = turn.unsaid.filter((each) => !isHeard(each))\n    else',
    'this.#sayPrompts(kept, turn)\n    else',
  ),
  inKept(
    'a question stays with a driver that drives no more',
    'kept/questions.ts',
    '      if (asked.question !== undefined) this.#withdraw(asked)\n      this.#put(asked)\n    }\n  }\n',
    '      this.#put(asked)\n    }\n  }\n',
  ),
  inKept(
    'somebody else may load a session',
    'kept/claims.ts',
    'if (table.isForeign(client.principal, session!, pool.spec.id)) {',
    'if (session === undefined) {',
  ),
  inKept(
    'a load begins behind the first line',
    'kept/claims.ts',
    'const next = isReplayed ? 1 : sentTo + 1',
    'const next = isReplayed ? 3 : sentTo + 1',
  ),
  inKept(
    'a resume tells again what was told',
    'kept/claims.ts',
    'const next = isReplayed ? 1 : sentTo + 1',
    'const next = isReplayed ? 1 : Math.max(1, sentTo)',
  ),
  inKept(
    'who waited for a session that was brought back waits for ever',
    'kept/claims.ts',
    'if (claimed !== undefined) this.#kept.turns.proceed(claimed)',
    '',
  ),
  inKept(
    'sessions end with their client',
    'kept/kept.ts',
    "else this.end(kept, { by: 'keep_sec' })\n    })",
    "else this.end(kept, { by: 'keep_sec' })\n    })\n    this.end(kept, { by: 'keep_sec' })",
  ),
  inKept(
    'what the journal has not written is let go',
    'kept/history.ts',
    'kept.journal.release(seq)',
    'kept.journal.release(seq + 1)',
  ),
]
