/**
 * Who has logged in to the console: codes that are good once, and logins that a cookie names (contract 15.2, 15.3).
 *
 * It holds no credential, only whom one has proved. Everything here is bounded and ends by itself; time is given.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Admitted } from '../../web/port.ts'

const MAX_CODES = 16
const CODE_MS = 5 * 60_000
const MAX_LOGINS = 64
const IDLE_MS = 12 * 60 * 60_000
const LIFETIME_MS = 7 * 24 * 60 * 60_000
const SECRET_BYTES = 16

export interface Login {
  /** What the cookie says is the secret; this is its digest. */
  readonly key: string
  readonly admitted: Admitted
  /** What a page shows to prove that a write is its own. */
  readonly csrf: string
  readonly sinceMs: number
  usedMs: number
}

interface Code {
  readonly admitted: Admitted
  readonly untilMs: number
}

export class Logins {
  readonly #now: () => number
  readonly #stillHolds: (admitted: Admitted) => boolean
  readonly #codes = new Map<string, Code>()
  readonly #logins = new Map<string, Login>()

  /** `stillHolds`: whether what was proved then is still so (contract 9.5). */
  constructor(now: () => number, stillHolds: (admitted: Admitted) => boolean) {
    this.#now = now
    this.#stillHolds = stillHolds
  }

  /** A code for whoever shall log in by it; of too many the oldest goes. */
  makeCode(admitted: Admitted): string {
    const code = makeSecret()
    this.#codes.set(digestOf(code), { admitted, untilMs: this.#now() + CODE_MS })
    if (this.#codes.size > MAX_CODES) this.#codes.delete(this.#codes.keys().next().value!)
    return code
  }

  /** Whom a code stands for; it is spent by that. */
  spend(code: string): Admitted | undefined {
    const key = digestOf(code)
    const found = this.#codes.get(key)
    this.#codes.delete(key)
    return found === undefined || found.untilMs < this.#now() ? undefined : found.admitted
  }

  /** The secret for the cookie, and the login. */
  open(admitted: Admitted): { readonly secret: string; readonly login: Login } {
    const secret = makeSecret()
    const nowMs = this.#now()
    const login = { key: digestOf(secret), admitted, csrf: makeSecret(), sinceMs: nowMs, usedMs: nowMs }
    this.#logins.set(login.key, login)
    if (this.#logins.size > MAX_LOGINS) this.#logins.delete(this.#idlest())
    return { secret, login }
  }

  /** The login of a cookie, if it is one and still holds. */
  find(secret: string): Login | undefined {
    const login = this.#logins.get(digestOf(secret))
    if (login === undefined) return undefined
    if (!this.holds(login)) return void this.end(login)
    login.usedMs = this.#now()
    return login
  }

  holds(login: Login): boolean {
    const nowMs = this.#now()
    const isFresh = nowMs - login.usedMs < IDLE_MS && nowMs - login.sinceMs < LIFETIME_MS
    return isFresh && this.#logins.has(login.key) && this.#stillHolds(login.admitted)
  }

  /** Until when it holds if it is not used again. */
  endsAtMs({ usedMs, sinceMs }: Login): number {
    return Math.min(usedMs + IDLE_MS, sinceMs + LIFETIME_MS)
  }

  end({ key }: Login): void {
    this.#logins.delete(key)
  }

  #idlest(): string {
    let idlest: Login | undefined
    for (const login of this.#logins.values()) if (idlest === undefined || login.usedMs < idlest.usedMs) idlest = login
    return idlest!.key
  }
}

function makeSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

/** Looked up by it, a secret cannot be guessed byte by byte. */
function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}
