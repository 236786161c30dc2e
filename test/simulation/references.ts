/**
 * What a client refers to, and what both sides agree on: a session is its own (contract 6.4), a cancel means the newest request with its id (contract 4.2.3),
 * and the revision of MCP that a welcome names is the older of two (contract 6.6).
 */
import { type ClientLine, idKey, respell, type WorkerLine } from './line.ts'
import type { SimClient } from './sim-client.ts'
import type { Received, SimWorker } from './sim-worker.ts'
import { demand } from './violation.ts'

/** What a client says in a session reaches nobody's agent but its own (contract 6.4). */
export function demandOwn(worker: SimWorker, line: ClientLine, text: string): void {
  const { world, tongue, temper, spec } = worker
  const { author, method } = line
  const isPrompt = method === 'session/prompt' && author.tongue === 'acp' && tongue === 'acp'
  if (!isPrompt || temper === 'lying' || spec.sharing === 'isolated' || world.scenario.isMixed) return
  for (const name of line.sessions) {
    const owner = worker.ownerOf(name)
    const isHeld = owner?.isListening && !owner.isDeafened && owner.sessions.includes(name)
    if (owner === author || !isHeld || world.clients.some(({ claimed }) => claimed.has(name))) continue
    demand(false, 'nobody else sees it', `${author} speaks in the session of ${owner}, and ${worker} got ${text}`)
  }
}

/** Requests that a cancel has named at their worker. */
const named = new WeakSet<ClientLine>()

/** `received` is what the worker must take the cancel for. */
export function demandNewest(worker: SimWorker, received: Received, cancel: ClientLine, text: string): void {
  const meant = received.line
  if (meant === undefined) return
  const isNamed = named.has(meant)
  named.add(meant)
  if (isNamed || !isSame(meant.idRaw, cancel.innerRaw)) return
  for (const { line } of worker.open.values()) {
    if (line === undefined || line.author !== meant.author || named.has(line)) continue
    if (!isSame(line.idRaw, meant.idRaw)) continue
    const isNewer = line.serial > meant.serial && line.serial < cancel.serial
    // Who has timed out, whichever edition of the pool it came under, is no more meant.
    const mayTimeOut = worker.world.poolsFor(line).some(({ limits }) => limits.requestTimeoutMs > 0)
    if (!isNewer || mayTimeOut || worker.vagueIds.size > 0) continue
    demand(false, 'nobody else sees it', `${cancel.author} cancels ${line.text}, and ${worker} got ${text}`)
  }
}

/** Ids are compared by value. */
function isSame(a: string | undefined, b: string | undefined): boolean {
  return idKey(a!) === idKey(b!) || (respell(a!) === respell(b!) && Number.isSafeInteger(JSON.parse(a!)))
}

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const

/** What a server with a handshake speaks. */
export function revisionOf({ slot }: SimWorker): string {
  return slot % 2 === 0 ? '2025-11-25' : '2025-06-18'
}

/** The bus has answered a handshake with what the worker said to its own. */
export function demandRevision(
  client: SimClient,
  asked: ClientLine | undefined,
  welcome: WorkerLine,
  text: string,
): void {
  // A server that is the client's own answers for itself.
  if (welcome.author.spec.sharing === 'isolated' || client.tongue !== 'legacy') return
  if (asked === undefined || client.world.scenario.isMixed) return
  const wanted = /"protocolVersion":"([^"]*)"/.exec(asked.text)?.[1] ?? ''
  const spoken = revisionOf(welcome.author)
  const isKnown = (REVISIONS as readonly string[]).includes(wanted)
  const agreed = isKnown && wanted < spoken ? wanted : spoken
  const isAgreed = text.includes(`"protocolVersion":"${agreed}"`)
  demand(isAgreed, 'justified', () => `${client} wants ${wanted}, ${welcome.author} speaks ${spoken}: ${text}`)
}
