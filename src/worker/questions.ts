/**
 * What a worker has asked its host and has no answer to yet.
 *
 * Invariant: a question is settled once; when the worker ends, all that are open fail.
 */
import { CODE, type ErrorObject } from '../wire/jsonrpc.ts'
import { WorkerError } from './error.ts'

interface Open {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: WorkerError) => void
}

const MAX_OPEN = 10_000

export class Questions {
  readonly #write: (line: Buffer) => void
  readonly #open = new Map<string, Open>()
  #asked = 0

  constructor(write: (line: Buffer) => void) {
    this.#write = write
  }

  ask(method: string, params: object | undefined): Promise<unknown> {
    if (this.#open.size >= MAX_OPEN) {
      return Promise.reject(new WorkerError(CODE.internalError, `${MAX_OPEN} questions wait for their answers`))
    }
    const id = `q${++this.#asked}`
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject })
      this.#write(Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`))
    })
  }

  /** An answer to nothing that was asked is nobody's. */
  answer(message: Readonly<Record<string, unknown>>): void {
    const id = String(message['id'])
    const open = this.#open.get(id)
    this.#open.delete(id)
    const error = message['error'] as ErrorObject | null | undefined
    if (error == null) open?.resolve(message['result'])
    else open?.reject(new WorkerError(error.code, error.message, error.data))
  }

  end(): void {
    for (const { reject } of this.#open.values()) reject(new WorkerError(CODE.internalError, 'the worker ends'))
    this.#open.clear()
  }
}
