/**
 * What a client has learnt from members by their results: resources and tasks that no list names, and whose they are
 * (contract 13.7). Bounded; the oldest is forgotten.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { BOUNDS } from './spec.ts'

class Recent {
  readonly #limit: number
  readonly #pools = new Map<string, string>()

  constructor(limit: number) {
    this.#limit = limit
  }

  note(name: string, pool: string): void {
    if (name.length > BOUNDS.uriLength) return
    this.#pools.delete(name)
    this.#pools.set(name, pool)
    const [oldest] = this.#pools.keys()
    if (this.#pools.size > this.#limit) this.#pools.delete(oldest!)
  }

  find(name: string): string | undefined {
    return this.#pools.get(name)
  }
}

export class Memories {
  readonly uris = new Recent(BOUNDS.rememberedUris)
  readonly tasks = new Recent(BOUNDS.rememberedTasks)

  /** A result has come from a member. */
  learn(line: Envelope, pool: string): void {
    const taskId = line.text(FIELD.resultInnerTaskId) ?? line.text(FIELD.resultTaskId)
    if (taskId !== undefined) this.tasks.note(taskId, pool)
    const { bytes, start, end } = line
    // Most results have none: those are not looked into.
    if (bytes.subarray(start, end).indexOf('"uri"') === -1) return
    for (const uri of urisIn(JSON.parse(line.spelling(FIELD.result)))) this.uris.note(uri, pool)
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Where results have URIs: contents that were read, links and embedded resources, also in the messages of a prompt. */
function urisIn(result: unknown): string[] {
  const { contents, content, messages } = fieldsOf(result)
  const blocks = [...listOf(content), ...listOf(messages).map((message) => fieldsOf(message)['content'])]
  const found = [...listOf(contents), ...blocks, ...blocks.map((block) => fieldsOf(block)['resource'])]
  const uris = found.map((each) => fieldsOf(each)['uri']).filter((uri): uri is string => typeof uri === 'string')
  return uris.slice(0, BOUNDS.urisInResult)
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
