/**
 * A dialect made ready for the byte path: rows are found by the bytes of a method, without decoding it.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { ClientRow, Dialect, Dialects, WorkerRow } from './dialect.ts'

interface Entry<Row> {
  readonly method: Buffer
  readonly row: Row
}

class MethodTable<Row> {
  readonly #byLength: Entry<Row>[][] = []

  constructor(rows: Readonly<Record<string, Row>>) {
    for (const [name, row] of Object.entries(rows)) {
      const method = Buffer.from(name)
      this.#byLength[method.length] ??= []
      this.#byLength[method.length]!.push({ method, row })
    }
  }

  find(envelope: Envelope): Row | undefined {
    const start = envelope.startOf(FIELD.method) + 1
    const end = envelope.endOf(FIELD.method) - 1
    if (isEscaped(envelope.bytes, start, end)) return this.#findDecoded(Buffer.from(envelope.text(FIELD.method)!))
    return this.#findAt(envelope.bytes, start, end)
  }

  #findDecoded(method: Buffer): Row | undefined {
    return this.#findAt(method, 0, method.length)
  }

  #findAt(bytes: Buffer, start: number, end: number): Row | undefined {
    const candidates = this.#byLength[end - start]
    if (candidates === undefined) return undefined
    for (const { method, row } of candidates) if (isAt(method, bytes, start)) return row
    return undefined
  }
}

const BACKSLASH = 0x5c

/** A method is compared by value, like every routing field. */
function isEscaped(bytes: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] === BACKSLASH) return true
  return false
}

function isAt(method: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < method.length; i++) if (method[i] !== bytes[start + i]) return false
  return true
}

export class Tongue {
  readonly dialect: Dialect
  readonly client: MethodTable<ClientRow>
  readonly worker: MethodTable<WorkerRow>

  constructor(dialect: Dialect) {
    this.dialect = dialect
    this.client = new MethodTable(dialect.fromClient)
    this.worker = new MethodTable(dialect.fromWorker)
  }
}

const INITIALIZE = new MethodTable({ initialize: 'initialize', 'server/discover': 'discover' } as const)

/** Which tongue a client speaks, as far as the message at hand shows it. */
export class Tongues {
  readonly acp: Tongue
  readonly mcpLegacy: Tongue
  readonly mcpModern: Tongue

  constructor(dialects: Dialects) {
    this.acp = new Tongue(dialects.acp)
    this.mcpLegacy = new Tongue(dialects.mcpLegacy)
    this.mcpModern = new Tongue(dialects.mcpModern)
  }

  recognise(envelope: Envelope): Tongue | undefined {
    const opening = INITIALIZE.find(envelope)
    if (opening === 'discover' || envelope.has(FIELD.metaProtocolVersion)) return this.mcpModern
    if (opening === undefined) return undefined
    return envelope.typeOf(FIELD.protocolVersion) === 'string' ? this.mcpLegacy : this.acp
  }
}

/** A message that asks for the era of a server. */
export function isDiscovery(envelope: Envelope): boolean {
  return INITIALIZE.find(envelope) === 'discover'
}
