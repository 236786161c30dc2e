/**
 * Messages of the stateless era (contract 10.6, 10.11): each POST is a client of its own. Only where every client has a worker to
 * itself, one client stands for all POSTs of a principal, and is kept for a while, so that no process is started for each.
 */
import type { WorkerId } from '../../kernel/vocabulary.ts'
import { type Envelope, SHAPE } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import type { Message } from '../body.ts'
import type { WebPort } from '../port.ts'
import type { WebRequest } from '../web-request.ts'
import { Affinity } from './affinity.ts'
import { Carrier } from './carrier.ts'
import { problemOfHead } from './head-check.ts'

/** So long a principal's worker is kept after its last request. */
const KEPT_MS = 60_000
const CANCELLED = 'notifications/cancelled'

interface Kept {
  readonly carrier: Carrier
  timer: NodeJS.Timeout | undefined
}

export class StatelessPosts {
  readonly #port: WebPort
  readonly #affinity = new Affinity()
  /** By pool and principal. */
  readonly #kept = new Map<string, Kept>()

  constructor(port: WebPort) {
    this.#port = port
  }

  serve(web: WebRequest, { envelope, line }: Message): void {
    const id = envelope.idSpelling()
    if (envelope.shape === SHAPE.response)
      return web.refuse({ reason: 'bad_envelope', detail: { problem: 'nobody has asked this client anything' }, id })
    const refusal = envelope.shape === SHAPE.request ? problemOfHead(headOf(web), envelope) : undefined
    if (refusal !== undefined) return web.refuse({ ...refusal, id })
    const pool = envelope.text(FIELD.pool) ?? web.pool ?? this.#port.poolOf(web.admitted.identity) ?? ''
    const isKept = this.#port.pool(pool)?.sharing === 'isolated'
    if (envelope.shape === SHAPE.request) {
      const carrier = isKept ? this.#keptFor(web, pool) : this.#ownFor(web, pool, envelope)
      return carrier.ask(web, envelope)
    }
    web.answer(202, undefined)
    // Whoever cancels closes its POST: an id means nothing in another.
    if (envelope.text(FIELD.method) === CANCELLED) return this.#port.refused('cancel_for_nothing')
    const carrier = isKept ? this.#keptFor(web, pool) : this.#ownFor(web, pool, envelope)
    carrier.tell(line)
  }

  #ownFor(web: WebRequest, pool: string, message: Envelope): Carrier {
    const answered = (answer: Envelope, worker: WorkerId | undefined): void => {
      if (worker !== undefined) this.#affinity.remember(pool, answer, worker, performance.now())
    }
    const carrier = new Carrier(this.#port, { answered, idle: () => carrier.leave(true), over: () => {} }, false)
    return this.#open(web, carrier, this.#affinity.find(pool, message, performance.now()))
  }

  #keptFor(web: WebRequest, pool: string): Carrier {
    const key = `${pool}\n${web.admitted.identity.principal}`
    const known = this.#kept.get(key)
    if (known !== undefined) {
      clearTimeout(known.timer)
      if (known.carrier.clientId !== undefined) this.#port.renew(known.carrier.clientId, web.admitted)
      return known.carrier
    }
    const idle = (): void => {
      clearTimeout(kept.timer)
      kept.timer = setTimeout(() => carrier.leave(true), KEPT_MS).unref()
    }
    const over = (): void => {
      clearTimeout(kept.timer)
      if (this.#kept.get(key) === kept) this.#kept.delete(key)
    }
    const carrier = new Carrier(this.#port, { answered: () => {}, idle, over }, true)
    const kept: Kept = { carrier, timer: undefined }
    this.#kept.set(key, kept)
    return this.#open(web, carrier)
  }

  #open(web: WebRequest, carrier: Carrier, prefer?: WorkerId): Carrier {
    const { admitted, connection, pool } = web
    const entrance = { door: 'http', isLocal: false, identity: admitted.identity, pool, prefer, isBrief: true } as const
    carrier.attach(this.#port.open(entrance, admitted, connection.peer, carrier))
    return carrier
  }
}

function headOf(web: WebRequest) {
  return {
    version: web.header('mcp-protocol-version')?.trim(),
    method: web.header('mcp-method'),
    name: web.header('mcp-name'),
  }
}
