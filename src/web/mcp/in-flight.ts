/**
 * The requests of one client that several POSTs have sent: whose an answer or a progress is. Pure.
 *
 * A client of the kernel has one space of ids; whoever shares it, or uses an id again before its answer has come, is given another
 * for the way, and gets back what it wrote. Everything that need not change passes as it is.
 */
import type { Envelope, IdKey } from '../../wire/envelope.ts'
import { FIELD, type Field } from '../../wire/fields.ts'
import { type Edit, replace, splice } from '../../wire/splice.ts'

export interface Asked<T> {
  readonly owner: T
  /** As it is known on the way. */
  readonly key: IdKey
  readonly idSpelling: string
  readonly token: IdKey | undefined
  readonly tokenSpelling: string
  /** What its sender wrote, if another was put in its place. */
  readonly original: IdKey | undefined
}

/** A line on its way back, and whose it is. */
export interface Returned<T> {
  readonly asked: Asked<T>
  readonly line: Buffer
}

const ALIAS = 'stdio-bus/'

export class InFlight<T> {
  readonly #asked = new Map<IdKey, Asked<T>>()
  readonly #tokens = new Map<IdKey, Asked<T>>()
  #aliases = 0

  get size(): number {
    return this.#asked.size
  }

  owners(): Iterable<Asked<T>> {
    return this.#asked.values()
  }

  /** A request sets out; gives its line as it goes. */
  ask(line: Envelope, owner: T): Buffer {
    const edits: Edit[] = []
    const wished = line.key(FIELD.id)!
    const key = this.#free(this.#asked, wished)
    if (key !== wished) edits.push(replace(line, FIELD.id, JSON.stringify(key)))
    const wishedToken = line.has(FIELD.metaProgressToken) ? line.key(FIELD.metaProgressToken) : undefined
    const token = wishedToken === undefined ? undefined : this.#free(this.#tokens, wishedToken)
    if (token !== wishedToken) edits.push(replace(line, FIELD.metaProgressToken, JSON.stringify(token)))
    const asked: Asked<T> = {
      owner,
      key,
      idSpelling: line.idSpelling(),
      token,
      tokenSpelling: token === undefined ? '' : line.spelling(FIELD.metaProgressToken),
      original: key === wished ? undefined : wished,
    }
    this.#asked.set(key, asked)
    if (token !== undefined) this.#tokens.set(token, asked)
    return edits.length === 0 ? line.bytes.subarray(line.start, line.end) : edited(line, edits)
  }

  /** An answer has come: the request is over. */
  answer(line: Envelope): Returned<T> | undefined {
    const key = line.key(FIELD.id)
    const asked = key === undefined ? undefined : this.#asked.get(key)
    if (asked === undefined) return undefined
    this.strike(asked)
    return { asked, line: this.#restored(asked, line, [FIELD.id, FIELD.resultSubscriptionId]) }
  }

  /** The progress of a request. */
  progress(line: Envelope): Returned<T> | undefined {
    const token = line.has(FIELD.progressToken) ? line.key(FIELD.progressToken) : undefined
    const asked = token === undefined ? undefined : this.#tokens.get(token)
    return asked === undefined ? undefined : { asked, line: tokenRestored(asked, line) }
  }

  /** What names a request of the client in this field; some servers give a number back as a string. */
  naming(line: Envelope, field: Field): Returned<T> | undefined {
    const key = line.has(field) ? line.key(field) : undefined
    const asked = key === undefined ? undefined : (this.#asked.get(key) ?? this.#asked.get(Number(key)))
    return asked === undefined ? undefined : { asked, line: this.#restored(asked, line, [field]) }
  }

  /** The request that its sender means by this id: the newest of those that it has. */
  find(key: IdKey): Asked<T> | undefined {
    let found = this.#asked.get(key)
    if (found?.original !== undefined) found = undefined
    if (this.#aliases > 0) for (const asked of this.#asked.values()) if (asked.original === key) found = asked
    return found
  }

  /** A cancel of that request, as it goes. */
  cancelled(line: Envelope, asked: Asked<T>): Buffer {
    if (asked.original === undefined) return line.bytes.subarray(line.start, line.end)
    return edited(line, [replace(line, FIELD.requestId, JSON.stringify(asked.key))])
  }

  /** Nothing more is expected for it. */
  strike(asked: Asked<T>): void {
    this.#asked.delete(asked.key)
    if (asked.token !== undefined && this.#tokens.get(asked.token) === asked) this.#tokens.delete(asked.token)
  }

  #free(taken: ReadonlyMap<IdKey, unknown>, wished: IdKey): IdKey {
    let key = wished
    while (taken.has(key)) key = `${ALIAS}${++this.#aliases}`
    return key
  }

  #restored({ original, idSpelling }: Asked<T>, line: Envelope, fields: readonly Field[]): Buffer {
    const edits = original === undefined ? [] : fields.filter((field) => line.has(field))
    if (edits.length === 0) return line.bytes.subarray(line.start, line.end)
    return edited(
      line,
      edits.map((field) => replace(line, field, idSpelling)),
    )
  }
}

function tokenRestored<T>({ token, tokenSpelling }: Asked<T>, line: Envelope): Buffer {
  const isOther = typeof token === 'string' && token.startsWith(ALIAS) && JSON.stringify(token) !== tokenSpelling
  if (!isOther) return line.bytes.subarray(line.start, line.end)
  return edited(line, [replace(line, FIELD.progressToken, tokenSpelling)])
}

/** Without the newline that a spliced line ends with. */
function edited(line: Envelope, edits: readonly Edit[]): Buffer {
  return splice(line, edits).subarray(0, -1)
}
