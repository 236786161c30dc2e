/**
 * Ids that a JSON library may respell (an unsafe integer, a fraction, a lone surrogate) and how their sender wrote them.
 *
 * The gateway knows such a request under a string that nobody else uses at the time; its replies get the spelling back,
 * byte for byte (contract 4.2.3). An entry goes with its final reply or with its caller, so there are never more than
 * open requests.
 */
import { JsonText } from '../../wire/ready-json.ts'

type Message = Record<string, unknown>

export class OddIds {
  readonly #byCaller = new Map<string, Map<string, string>>()
  #last = 0

  /** The name under which the gateway shall know the request. */
  lend(caller: string, spelling: string): string {
    this.#last += 1
    const alias = `${spelling} (${this.#last})`
    const aliases = this.#byCaller.get(caller)
    if (aliases === undefined) this.#byCaller.set(caller, new Map([[alias, spelling]]))
    else aliases.set(alias, spelling)
    return alias
  }

  /** The line of a reply, with the id as its caller spelled it. */
  spell(caller: string, message: Message): string {
    const { result, ...rest } = message
    // A long result that is text already is not written again.
    if (result instanceof JsonText) return `{"result":${result.text},${this.spell(caller, rest).slice(1)}`
    const aliases = this.#byCaller.get(caller)
    if (aliases === undefined) return JSON.stringify(message)
    return this.#spellOdd(caller, aliases, message)
  }

  forget(caller: string): void {
    this.#byCaller.delete(caller)
  }

  #spellOdd(caller: string, aliases: Map<string, string>, message: Message): string {
    const params = message['params'] as Message | undefined
    const isFinal = message['method'] === undefined
    const alias = String(isFinal ? message['id'] : params?.['id'])
    const spelling = aliases.get(alias)
    if (spelling === undefined) return JSON.stringify(message)
    if (!isFinal) return withFirst({ ...message, params: undefined }, 'params', withFirst(params!, 'id', spelling))
    const text = withFirst(message, 'id', spelling)
    aliases.delete(alias)
    if (aliases.size === 0) this.#byCaller.delete(caller)
    return text
  }
}

/** `message` as JSON with `key` in front, whose value is JSON already. */
function withFirst(message: Message, key: string, value: string): string {
  const rest = JSON.stringify({ ...message, [key]: undefined })
  return `{"${key}":${value}${rest === '{}' ? '' : ','}${rest.slice(1)}`
}
