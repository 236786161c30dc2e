/**
 * A line that a simulated peer has written, with the few places in it that the bus may change (contract 4.2.3).
 *
 * Every line carries its serial number, so whoever receives it can say whose it was and what it must look like: the id and
 * one inner reference may be another spelling, some members may be cut, every other byte is as it was written.
 */
import type { Reason } from '../../src/kernel/faults.ts'
import type { SimPrincipal } from './access-scenario.ts'
import type { SimClient } from './sim-client.ts'
import type { SimWorker } from './sim-worker.ts'
import type { Offer } from './visit.ts'

export type LineKind = 'request' | 'notification' | 'response' | 'fault'
export type Member = readonly [key: string, raw: string]

/** Stands in a member for the inner reference: a token, or the id of another message. */
export const INNER = '\u0001'

const SERIAL = '"#":'

export interface Draft {
  readonly kind: LineKind
  readonly method: string
  readonly members: readonly Member[]
  readonly idRaw?: string | undefined
  readonly innerRaw?: string | undefined
  readonly comma?: string
}

/** A call of an agent, as the trace of the gateway has it. */
export interface CallRecord {
  /** `trace#id`. */
  readonly key: string
  readonly traceId: string
  readonly callId: number
  readonly parentId: number | null
  readonly agent: string
  readonly method: string
  /** The line that asked; undefined: it could not be told. */
  readonly line: ClientLine | WorkerLine | undefined
  readonly isRequest: boolean
  readonly depth: number
  readonly startedMs: number
  readonly timeoutMs: number
  /** So many parts of the answer its caller has heard. */
  partials: number
  /** The worker that got it. */
  receiver: SimWorker | undefined
  /** Why it failed, or `said` when the agent answered; undefined: it is open. */
  end: string | undefined
}

/** Whose a message was when the bus took it. */
export interface Taken {
  /** Undefined: it had proved nothing. */
  readonly principal: SimPrincipal | undefined
  /** How many events there had been. */
  readonly event: number
  /** How many answers the principal was owed at the most, over all its connections. */
  owed: number
}

abstract class Line {
  readonly serial: number
  readonly kind: LineKind
  readonly method: string
  readonly members: readonly Member[]
  readonly idRaw: string | undefined
  readonly innerRaw: string | undefined
  readonly text: string
  readonly #comma: string
  /** It goes to the gateway. */
  isCall = false
  /** What the gateway has made of it. */
  call: CallRecord | undefined

  constructor(serial: number, draft: Draft) {
    this.serial = serial
    this.kind = draft.kind
    this.method = draft.method
    this.members = draft.members
    this.idRaw = draft.idRaw
    this.innerRaw = draft.innerRaw
    this.#comma = draft.comma ?? ','
    this.text = this.render(this.idRaw, this.innerRaw)
  }

  /** What the line looks like with another id, another inner reference, and without some members. */
  render(idRaw: string | undefined, innerRaw: string | undefined, omitted?: ReadonlySet<string>): string {
    let text = ''
    for (const [key, raw] of this.members) {
      if (omitted?.has(key)) continue
      let value = key === 'id' ? idRaw! : raw
      if (innerRaw !== undefined && value.includes(INNER)) value = value.replace(INNER, () => innerRaw)
      text += `${text === '' ? '' : this.#comma}"${key}":${value}`
    }
    return `{${text}}`
  }
}

/** From a client. */
export class ClientLine extends Line {
  readonly author: SimClient
  /** The sessions it names. */
  sessions: readonly string[] = []
  pool: string | undefined
  /** The question of a worker that it answers. */
  answers: WorkerLine | undefined
  /** Its author has given such an id before without being asked: nothing strict can be said of it. */
  isVague = false
  sentAtMs = 0
  /** When the bus has taken it, and how many answers its author was owed then. */
  arrivedAtMs = Number.POSITIVE_INFINITY
  owedBefore = 0
  isConsumed = false
  isAnswered = false
  isCancelled = false
  /** The cancel of a call: when the call is over, it says nothing to whoever gets it. */
  isStray = false
  /** The resource, task or session it is about. */
  about: string | undefined
  // Of a client that is told apart from others.
  taken: Taken | undefined
  offer: Offer | undefined
  /** The tool that it calls; undefined: nobody can tell. */
  tool: string | undefined
  /** Why the bus has refused it. */
  refusedFor: Reason | undefined
  /** What answers it is no list. */
  isListless = false
  // What the worker that received it saw.
  receiver: SimWorker | undefined
  /** The worker that died before it had read it. */
  lostWith: SimWorker | undefined
  isAliased = false
  isInnerAliased = false
  workerIdRaw: string | undefined
  tokenRaw: string | undefined

  constructor(serial: number, author: SimClient, draft: Draft) {
    super(serial, draft)
    this.author = author
  }
}

/** From a worker. */
export class WorkerLine extends Line {
  readonly author: SimWorker
  /** Whom it is meant for; `bus`: an answer to the bus itself. */
  to: SimClient | 'everyone' | 'subscribers' | 'bus' | undefined
  /** The request that it answers. */
  answers: ClientLine | undefined
  /** The request it is about, which it does not name. */
  during: ClientLine | undefined
  /** The request whose token or id stands in it. */
  refersTo: ClientLine | undefined
  /** The worker has used this id in a lie before: nothing strict can be said of it. */
  isVague = false
  session: string | undefined
  announces: string | undefined
  about: string | undefined
  /** Written before its session was announced: it may come later than its place. */
  isEarly = false
  isAnswered = false
  isAliased = false
  /** The call that it answers, or of whose answer it is a part. */
  callOf: CallRecord | undefined
  isPart = false
  /** The tools that it lists. */
  tools: readonly { readonly name: string | undefined; readonly raw: string }[] | undefined
  readonly receivers: SimClient[] = []

  constructor(serial: number, author: SimWorker, draft: Draft) {
    super(serial, draft)
    this.author = author
  }
}

/** The messages of an array, as they are spelled; a line that is none is one message. */
export function messagesIn(text: string): string[] {
  if (!text.startsWith('[')) return [text]
  const messages: string[] = []
  let depth = 0
  let from = 1
  for (let i = 1; i < text.length; i++) {
    const character = text[i]!
    if (character === '"') i = endOfString(text, i)
    else if (character === '{') depth++
    else if (character === '}' && --depth === 0) {
      messages.push(text.slice(from, i + 1))
      from = i + 2
    }
  }
  return messages
}

/** Where the string that begins there ends. */
function endOfString(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}

/** The serial numbers of all lines in a text. */
export function serialsIn(text: string): number[] {
  return Array.from(text.matchAll(/"#":(\d+)/g), ([, digits]) => Number(digits))
}

/** The serial number in a received line; -1: the bus has made it. */
export function serialIn(text: string): number {
  const at = text.indexOf(SERIAL)
  return at === -1 ? -1 : Number.parseInt(text.slice(at + SERIAL.length, at + SERIAL.length + 12), 10)
}

/** The id of a line as it is spelled there; payloads of the simulation hold no other member of that name. */
export function idIn(text: string): string | undefined {
  return /"id": ?("(?:[^"\\]|\\.)*"|[^,}\s]+)/.exec(text)?.[1]
}

/** Ids are compared by value; numbers that a library may respell must come back as they were (contract 4.2.3). */
export function idKey(raw: string): string {
  return raw.charCodeAt(0) === 0x22 ? JSON.stringify(JSON.parse(raw)) : raw
}

/** How a JSON library gives an id back. */
export function respell(raw: string): string {
  return JSON.stringify(JSON.parse(raw))
}
