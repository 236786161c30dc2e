/**
 * Who is at the doors: judges what they show for the kernel, and tells it when a credential holds no more (contract 9.1 to
 * 9.5, 9.10, 9.25).
 *
 * The kernel asks, waits and obeys; rights are its tables. Here is the world it must not know: the access file, the clock on
 * the wall, addresses, the issuer, the audit log. No credential is kept, only what it has proved and the digest by which
 * that can be looked up again.
 */
import { fstatSync, statSync } from 'node:fs'
import type { PeerCertificate } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { AccessWatch } from '../../access/access-watch.ts'
import { AuditLog, type AuditStatus } from '../../access/audit.ts'
import type { AuditEvent } from '../../access/audit-line.ts'
import { callerOf } from '../../access/caller.ts'
import type { Identity as Proof, Refusal as Rebuff, Verdict } from '../../access/identity.ts'
import { Judge } from '../../access/judge.ts'
import { environmentFor, Principals } from '../../access/principals.ts'
import { REFUSAL_PAUSE_MS, RefusalLines, type RefusalPace, SlowedRefusals } from '../../access/refusals.ts'
import { type Sighting, Sightings } from '../../access/sightings.ts'
import { digestOf } from '../../access/token.ts'
import type { Opening } from '../../cluster/opening.ts'
import type { AccessConfig } from '../../config/bus-config.ts'
import { formatProblems } from '../../config/report.ts'
import { hostOf, isLoopbackHost, readTcpAddress } from '../../host/address.ts'
import type { Action, BusEvent } from '../../kernel/events.ts'
import type { Identity, Rights, Role } from '../../kernel/rights.ts'
import type { ClientId, Door, Refusal } from '../../kernel/vocabulary.ts'
import type { ConnectionInfo } from '../../transports/listener.ts'
import { UserMistake } from '../user-mistake.ts'
import type { Entrance } from './ends.ts'
import type { Log } from './log.ts'
import { identityFromNode, localIdentity, type Received, type Reception, type ShownOverWeb } from './open-doors.ts'

export interface AdmissionsOptions {
  readonly log: Log
  readonly tell: (event: BusEvent) => void
  /** Closes a connection without a word. */
  readonly drop: (client: ClientId) => void
  /** Whoever proves nothing may come through any door. */
  readonly allowUnauthenticated: boolean
  /** A client is served on stdout: nothing else may be written there. */
  readonly isStdoutTaken: boolean
}

/** Somebody at a door. */
interface Visitor {
  readonly door: string
  readonly peer: string
  /** What its credential has proved, and what it proves while the kernel has not said yes to it. */
  proof: Proof | undefined
  shown: Proof | undefined
  /** By which a token is looked up again. */
  digest: string | undefined
  shownDigest: string | undefined
  /** Its credential holds no more: it is on its way out. */
  isRevoked: boolean
}

/** What is known of somebody before anything is proved. */
const NOBODY: Omit<Visitor, 'door' | 'peer'> = {
  proof: undefined,
  shown: undefined,
  digest: undefined,
  shownDigest: undefined,
  isRevoked: false,
}

/** What a request over the web has proved, and by what that is looked up again. */
interface WebProof {
  readonly shown: Proof
  readonly digest: string | undefined
}

/** The file is looked at as often, and a connection outlives its credential by no more. */
const LOOK_MS = 500
const UNAUTHENTICATED: Verdict = { refusal: { reason: 'unauthenticated' } }

export class Admissions implements Reception {
  readonly #options: AdmissionsOptions
  readonly #judge: Judge
  readonly #visitors = new Map<ClientId, Visitor>()
  readonly #slowed = new SlowedRefusals(() => performance.now())
  readonly #lines = new RefusalLines(() => performance.now())
  readonly #timer: NodeJS.Timeout
  #principals = Principals.NONE
  #config: AccessConfig | undefined
  #watch: AccessWatch | undefined
  readonly #sightings = new Sightings(Date.now)
  #audit: AuditLog | undefined
  #isAudited = true
  /** Nobody was turned away since the last look. */
  #isQuiet = true
  #problem: string | undefined

  constructor(options: AdmissionsOptions) {
    this.#options = options
    this.#judge = new Judge({
      onState: ({ state, message }) => options.log.write(state === 'ok' ? 'info' : 'warn', message),
    })
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  /** From now on this holds; a file that cannot be used is the mistake of whoever starts the bus, and changes nothing later. */
  adopt(config: AccessConfig | undefined): void {
    if (this.#options.isStdoutTaken && isStdout(config?.audit?.file))
      throw new UserMistake('the audit log cannot go to stdout, where the client of --stdio is served: name a file')
    const before = this.#watch
    this.#watch = this.#open(config?.file)
    before?.close()
    this.#config = config
    this.#openAudit(config?.audit)
    this.#hold()
  }

  receive({ door, listener, peer, secured }: ConnectionInfo): Pick<Entrance, 'identity' | 'mustProve' | 'from'> {
    if (door === 'unix' || door === 'stdio') return {}
    const from = hostOf(peer)
    const verdict = secured === undefined ? this.#unproved(listener) : UNAUTHENTICATED
    return 'identity' in verdict ? { identity: this.#identityOf(verdict.identity), from } : { mustProve: true, from }
  }

  receiveOverWeb(shown: ShownOverWeb): Received | Promise<Received> {
    const { token, certificate, listener, peer, resource } = shown
    const received = (verdict: Verdict): Received => this.#received(verdict, token, peer)
    if (token !== undefined) {
      const verdict = this.#judge.ofToken(token, resource)
      return verdict instanceof Promise ? verdict.then(received, () => received(UNAUTHENTICATED)) : received(verdict)
    }
    const proved = certificate === undefined ? undefined : this.#judge.ofCertificate(certificate)
    return received(proved ?? this.#unproved(listener))
  }

  receiveLocal(role: Role): { readonly identity: Identity; readonly proof: WebProof } {
    const { rights } = localIdentity(role)
    const shown: Proof = { principal: 'local', rights, via: 'local' }
    return { identity: localIdentity(role), proof: { shown, digest: undefined } }
  }

  stillHolds(proof: unknown): boolean {
    // Who logged in before anybody was told apart is nobody in particular now.
    if (proof === undefined) return false
    const { shown, digest } = proof as WebProof
    if (shown.expiresAtMs !== undefined && shown.expiresAtMs <= Date.now()) return false
    return 'identity' in this.#judge.stillHolds(shown, digest)
  }

  openedOverWeb(client: ClientId, door: Door, peer: string, proof: unknown): void {
    const { shown, digest } = proof as WebProof
    this.#visitors.set(client, { ...NOBODY, door, peer, shown, shownDigest: digest })
  }

  renewedOverWeb(client: ClientId, proof: unknown): void {
    const { shown, digest } = proof as WebProof
    const visitor = this.#visitors.get(client)
    if (visitor === undefined || visitor.isRevoked || visitor.proof === undefined) return
    // What was shown for a while takes nothing from what was shown for longer.
    if (endOf(shown) < endOf(visitor.proof)) return
    visitor.proof = shown
    visitor.digest = digest
  }

  receiveFromNode(who: Opening, node: string): Identity {
    return identityFromNode(who, node, this.#principals.byName(who.name))
  }

  openedFromNode(client: ClientId, node: string): void {
    this.#visitors.set(client, { ...NOBODY, door: 'cluster', peer: node })
  }

  #received(verdict: Verdict, token: string | undefined, peer: string): Received {
    const digest = token === undefined ? undefined : digestOf(token)
    if ('identity' in verdict) {
      const proof: WebProof = { shown: verdict.identity, digest }
      return { identity: this.#identityOf(verdict.identity), proof }
    }
    const { refusal } = verdict
    this.#tellRefused({ door: 'http', peer }, refusal.reason)
    return { refusal, pace: this.#paceOf(refusal, digest, peer) }
  }

  /** The kernel knows of it now. */
  opened(client: ClientId, { door, listener, peer, secured }: ConnectionInfo): void {
    this.#visitors.set(client, { ...NOBODY, door, peer })
    secured?.then(
      (certificate) => this.#secured(client, certificate, listener),
      () => this.#failedHandshake(client),
    )
  }

  /** Somebody who came while nobody was asked. */
  takeOver(client: ClientId, info: ConnectionInfo): void {
    this.opened(client, info)
    const isLocal = info.door === 'unix' || info.door === 'stdio'
    const verdict = isLocal ? this.#judge.local() : this.#judge.anonymous()
    if ('refusal' in verdict) return this.#options.tell({ type: 'client-revoked', client, isExpired: false })
    const { principal, rights } = verdict.identity
    this.#visitors.get(client)!.proof = verdict.identity
    this.#options.tell({ type: 'rights-changed', principal, rights })
  }

  closed(client: ClientId): void {
    const visitor = this.#visitors.get(client)
    this.#visitors.delete(client)
    if (visitor?.proof !== undefined) this.#write({ event: 'close', client, ...aboutOf(visitor) })
  }

  /** The kernel asks what a client shows; without a token it has shown nothing where something must be shown. */
  judge(client: ClientId, token: string | undefined): void {
    const verdict = token === undefined ? UNAUTHENTICATED : this.#judge.ofToken(token)
    const digest = token === undefined ? undefined : digestOf(token)
    if (!(verdict instanceof Promise)) return this.#answer(client, verdict, digest)
    verdict.then(
      (told) => this.#answer(client, told, digest),
      () => this.#answer(client, UNAUTHENTICATED, digest),
    )
  }

  admitted(client: ClientId, identity: Identity): void {
    const visitor = this.#visitors.get(client)
    if (visitor === undefined) return
    visitor.proof = visitor.shown ?? {
      principal: identity.name,
      rights: identity.rights,
      via: identity.via as Proof['via'],
    }
    visitor.digest = visitor.shownDigest
    this.#write({ event: 'open', client, ...aboutOf(visitor), outcome: 'ok' })
  }

  turnedAway(client: ClientId, reason: string): void {
    this.#tellRefused({ client, ...aboutOf(this.#visitors.get(client)) }, reason)
  }

  #tellRefused(about: Partial<AuditEvent>, reason: string): void {
    this.#isQuiet = false
    const unwritten = this.#lines.take()
    if (unwritten === undefined) return
    const { client, peer } = about
    const more = unwritten === 0 ? {} : { unwritten }
    this.#options.log.write('warn', 'a client was turned away', { client, reason, peer, ...more })
    this.#write({ event: 'refused', ...about, outcome: 'refused', reason })
  }

  /** A message of a client has been answered or denied. */
  done(deed: Extract<Action, { do: 'audit' }>, traceId: string | undefined): void {
    const { client, event, pool, method, tool, outcome, durationMs } = deed
    const isPlain = outcome === 'ok' || outcome === 'error'
    const result = isPlain ? { outcome } : { outcome: event === 'denied' ? 'denied' : 'refused', reason: outcome }
    const about = aboutOf(this.#visitors.get(client))
    this.#write({ event, client, ...about, pool, method, tool, ...result, durationMs, traceId })
  }

  acted({ name, subject, via }: Identity, method: string, outcome: string): void {
    this.#write({ event: 'call', principal: name, subject, via, door: 'http', method, outcome })
  }

  scopeThatWouldDo(mayDo: (rights: Rights) => boolean): string | undefined {
    return this.#judge.scopeThatWouldDo(mayDo)
  }

  denied({ name, subject, via }: Identity, about: Pick<AuditEvent, 'door' | 'peer' | 'pool' | 'method'>): void {
    const outcome = { outcome: 'denied', reason: 'not_allowed' }
    this.#write({ event: 'denied', principal: name, subject, via, ...about, ...outcome })
  }

  sighted(name: string): Sighting | undefined {
    return this.#sightings.of(name)
  }

  reloaded(outcome: 'ok' | 'refused'): void {
    this.#write({ event: 'reload', outcome })
  }

  reopenAudit(): void {
    this.#audit?.reopen()
  }

  /** What a worker that is started for this principal gets (contract 9.22). */
  environmentOf(name: string, pool: string): Record<string, string> {
    if (name === 'anonymous') return environmentFor(this.#config?.anonymousEnvironment ?? {}, pool)
    return this.#principals.environmentOf(name, pool)
  }

  get status(): { readonly audit?: AuditStatus; readonly problem?: string } {
    return {
      ...(this.#audit === undefined ? {} : { audit: this.#audit.status }),
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#watch?.close()
    this.#judge.close()
    await this.#audit?.close()
  }

  // ---- credentials ----

  #secured(client: ClientId, certificate: PeerCertificate | undefined, listener: string): void {
    const proved = certificate === undefined ? undefined : this.#judge.ofCertificate(certificate)
    const verdict = proved ?? this.#unproved(listener)
    // Whoever has proved nothing and may not come like that shows a token next.
    if (proved === undefined && 'refusal' in verdict) return
    this.#answer(client, verdict, undefined)
  }

  /** A certificate that does not hold, or none; the door has told the log. */
  #failedHandshake(client: ClientId): void {
    const visitor = this.#visitors.get(client)
    if (visitor === undefined || this.#lines.take() === undefined) return
    this.#write({ event: 'refused', client, ...aboutOf(visitor), outcome: 'refused', reason: 'tls_handshake' })
  }

  /** Nobody in particular: where only this machine can come, or where that is wanted in so many words (contract 9.1). */
  #unproved(listener: string): Verdict {
    const address = readTcpAddress(listener.replace(/^[a-z]+:/, ''))
    const isLoopback = typeof address === 'object' && isLoopbackHost(address.host)
    if (!isLoopback && !this.#options.allowUnauthenticated) return UNAUTHENTICATED
    return this.#judge.anonymous()
  }

  #answer(client: ClientId, verdict: Verdict, digest: string | undefined): void {
    const visitor = this.#visitors.get(client)
    if (visitor === undefined) return
    if ('identity' in verdict) {
      visitor.shown = verdict.identity
      visitor.shownDigest = digest
      return this.#options.tell({ type: 'client-judged', client, identity: this.#identityOf(verdict.identity) })
    }
    const tell = (): void => {
      if (this.#visitors.has(client))
        this.#options.tell({ type: 'client-judged', client, refusal: refusalOf(verdict.refusal) })
    }
    const pace = this.#paceOf(verdict.refusal, digest, visitor.peer)
    if (pace === 'at_once') tell()
    else if (pace === 'after_pause') setTimeout(tell, REFUSAL_PAUSE_MS).unref()
    else this.#options.drop(client)
  }

  #paceOf({ reason }: Rebuff, digest: string | undefined, peer: string): RefusalPace {
    const isBad = digest !== undefined && reason === 'unauthenticated'
    return isBad ? this.#slowed.paceFor(hostOf(peer)) : 'at_once'
  }

  #identityOf(proof: Proof): Identity {
    const { principal, subject, via, rights, expiresAtMs } = proof
    return {
      principal: callerOf(proof),
      name: principal,
      ...(subject === undefined ? {} : { subject }),
      via,
      rights,
      ...(expiresAtMs === undefined ? {} : { expires: new Date(expiresAtMs).toISOString() }),
    }
  }

  // ---- the access file ----

  #open(file: string | undefined): AccessWatch | undefined {
    if (file === undefined) {
      this.#principals = Principals.NONE
      return undefined
    }
    const start = AccessWatch.start({
      file,
      environment: process.env,
      onChange: (principals) => this.#changed(principals),
      onTrouble: (problems) => this.#failed(formatProblems(problems)),
    })
    if (!start.ok) throw new UserMistake(formatProblems(start.problems).trimEnd())
    this.#principals = start.principals
    return start.watch
  }

  #changed(principals: Principals): void {
    this.#principals = principals
    this.#problem = undefined
    this.#options.log.write('info', 'the access file has changed, and holds', { principals: principals.names().length })
    this.#write({ event: 'access', outcome: 'ok' })
    this.#hold()
  }

  #failed(problem: string): void {
    this.#problem = problem.trimEnd()
    this.#options.log.write('error', `the access file has problems, the old rights stay:\n${this.#problem}`)
    this.#write({ event: 'access', outcome: 'refused', reason: 'the file has problems' })
  }

  /** What was judged before is judged by what holds now. */
  #hold(): void {
    this.#judge.adopt(this.#principals, this.#config)
    const told = new Set<string>()
    for (const [client, visitor] of [...this.#visitors]) {
      const { proof, digest, isRevoked } = visitor
      if (proof === undefined || isRevoked || proof.via === 'local' || proof.via === 'cluster') continue
      const verdict = this.#judge.stillHolds(proof, digest)
      if ('refusal' in verdict) {
        const isExpired = verdict.refusal.why === 'expired'
        if (!isExpired || !isFinished(visitor)) this.#revoke(client, visitor, isExpired)
        continue
      }
      visitor.proof = verdict.identity
      const principal = callerOf(verdict.identity)
      if (told.has(principal) || isDeepStrictEqual(proof.rights, verdict.identity.rights)) continue
      told.add(principal)
      this.#options.tell({ type: 'rights-changed', principal, rights: verdict.identity.rights })
    }
  }

  #look(): void {
    const nowMs = Date.now()
    for (const [client, visitor] of [...this.#visitors]) {
      const { proof, isRevoked } = visitor
      if (proof === undefined || isRevoked || isFinished(visitor)) continue
      if (endOf(proof) <= nowMs) this.#revoke(client, visitor, true)
    }
    this.#lookAtAudit()
    this.#tellUnwritten()
  }

  /** Of refusals that had no line of their own, when no more come. */
  #tellUnwritten(): void {
    const unwritten = this.#isQuiet ? this.#lines.takeUnwritten() : 0
    this.#isQuiet = true
    if (unwritten > 0) this.#options.log.write('warn', 'more clients were turned away', { unwritten })
  }

  #revoke(client: ClientId, visitor: Visitor, isExpired: boolean): void {
    visitor.isRevoked = true
    this.#options.tell({ type: 'client-revoked', client, isExpired })
  }

  // ---- the audit log ----

  #openAudit(settings: AccessConfig['audit']): void {
    if (settings === undefined) {
      void this.#audit?.close()
      this.#audit = undefined
    } else if (this.#audit === undefined) {
      const log = this.#options.log
      this.#audit = new AuditLog({ ...settings, log: (level, text, about) => log.write(level, text, { ...about }) })
    } else this.#audit.reopen(settings)
    this.#lookAtAudit()
  }

  #write(event: AuditEvent): void {
    this.#sightings.take(event)
    if (this.#audit === undefined) return
    this.#audit.write(event)
    if (this.#audit.isAvailable !== this.#isAudited) this.#lookAtAudit()
  }

  #lookAtAudit(): void {
    const isAvailable = this.#audit?.isAvailable ?? true
    if (isAvailable === this.#isAudited) return
    this.#isAudited = isAvailable
    this.#options.tell({ type: 'audit-changed', isAvailable })
  }
}

/** Signed tokens end often: a request that came with one is finished (contract 9.5), and its door ends its streams. */
function isFinished({ door, proof }: Visitor): boolean {
  return door === 'http' && proof?.via === 'jwt'
}

function endOf({ expiresAtMs = Number.POSITIVE_INFINITY }: Proof): number {
  return expiresAtMs
}

function aboutOf(visitor: Visitor | undefined): Partial<AuditEvent> {
  if (visitor === undefined) return {}
  const { door, peer, proof, shown } = visitor
  const { principal, subject, via, credential } = proof ?? shown ?? {}
  return { door, peer, principal, subject, via, credential }
}

function refusalOf({ reason, why, retryAfterMs }: Rebuff): Refusal {
  const detail = {
    ...(why === undefined ? {} : { why }),
    ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
  }
  return Object.keys(detail).length === 0 ? { reason } : { reason, detail }
}

function isStdout(file: string | undefined): boolean {
  if (file === undefined) return false
  try {
    const [one, other] = [statSync(file), fstatSync(process.stdout.fd)]
    return one.dev === other.dev && one.ino === other.ino && one.rdev === other.rdev
  } catch {
    return false
  }
}
