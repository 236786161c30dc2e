/**
 * The dialects of a bus: tables made ready for the byte path, and which of them a message shows.
 *
 * What a client shows says something of that client only; what a pool speaks is learnt from its workers.
 */
import type { Envelope } from '../wire/envelope.ts'
import { MethodTable } from '../wire/method-table.ts'
import type { ClientRow, DialectTable, Sign, WorkerRow } from './dialect-table.ts'

export class Dialect {
  readonly table: DialectTable
  readonly client: MethodTable<ClientRow>
  readonly worker: MethodTable<WorkerRow>

  constructor(table: DialectTable) {
    this.table = table
    this.client = new MethodTable(table.fromClient)
    this.worker = new MethodTable(table.fromWorker)
  }

  /** The rank of a log level; -1: there is no such level. */
  rankOf(level: string | undefined): number {
    return this.table.levels?.indexOf(level ?? '') ?? -1
  }
}

/** What shows a dialect, and which. */
interface Mark {
  readonly sign: Sign
  readonly dialect: Dialect
}

export class Dialects {
  readonly list: readonly Dialect[]
  /** The one whose workers the bus greets itself. */
  readonly greeted: Dialect | undefined
  /** The one that only an answer of the worker proves. */
  readonly probed: Dialect | undefined
  /** The one in which messages name sessions. */
  readonly withSessions: Dialect | undefined
  /** The one whose versions are numbers. */
  readonly numbered: Dialect | undefined
  /** The methods that cancel a request, in whichever dialect. */
  readonly cancels: ReadonlySet<string>
  /** What uses tools, in whichever dialect, and what belongs to messages that were taken before. */
  readonly #toolUses: MethodTable<'called' | 'listed'>
  readonly #free: MethodTable<true>
  /** A method that may open a connection, and the dialects it may be of. */
  readonly #openings: MethodTable<readonly Mark[]>
  /** Fields that show a dialect in any message. */
  readonly #marks: readonly Mark[]

  constructor(tables: readonly DialectTable[]) {
    this.list = tables.map((table) => new Dialect(table))
    this.greeted = this.list.find(({ table }) => table.greeting !== undefined)
    this.probed = this.list.find(({ table }) => table.probe !== undefined)
    this.withSessions = this.list.find(({ table }) => table.hasSessions)
    this.numbered = this.list.find(({ table }) => table.singleHandshakeFrom !== undefined)
    this.cancels = new Set(tables.flatMap(({ cancel }) => (cancel === undefined ? [] : [cancel.method])))
    const uses = tables.flatMap(({ tools }) =>
      tools === undefined ? [] : ([[tools.call, 'called'] as const, [tools.list, 'listed'] as const] as const),
    )
    this.#toolUses = new MethodTable(Object.fromEntries(uses))
    const rows = tables.flatMap(({ fromClient }) => Object.entries(fromClient))
    const free = rows.flatMap(([method, row]) => (isFree(row) ? [method] : []))
    const turnCancels = tables.flatMap(({ departure }) => (departure === undefined ? [] : [departure.cancelTurn]))
    this.#free = new MethodTable(Object.fromEntries([...free, ...turnCancels].map((method) => [method, true])))
    const marks = this.list.flatMap((dialect) => dialect.table.signs.map((sign) => ({ sign, dialect })))
    const of = (method: string | undefined): Mark[] => marks.filter(({ sign }) => sign.method === method)
    this.#marks = of(undefined)
    const methods = marks.flatMap(({ sign: { method } }) => (method === undefined ? [] : [method]))
    this.#openings = new MethodTable(Object.fromEntries(methods.map((method) => [method, of(method)])))
  }

  toolUseOf(line: Envelope): 'called' | 'listed' | undefined {
    return this.#toolUses.find(line)
  }

  /** The message counts for nothing (contract 9.21). */
  isFree(line: Envelope): boolean {
    return this.#free.find(line) === true
  }

  /** The dialect that the message shows, if it shows one. */
  recognise(line: Envelope): Dialect | undefined {
    for (const { sign, dialect } of this.#marks) if (line.has(sign.field!)) return dialect
    const openings = this.#openings.find(line)
    return openings?.find(({ sign }) => fits(sign, line))?.dialect
  }
}

function fits({ field, type }: Sign, line: Envelope): boolean {
  return field === undefined || line.typeOf(field) === (type ?? line.typeOf(field))
}

function isFree({ cancels, confirms, local }: ClientRow): boolean {
  return cancels !== undefined || confirms === true || local === 'pong'
}
