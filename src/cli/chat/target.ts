/**
 * Whom to talk to: from the options of the command to one address.
 *
 * It starts and connects nothing. Invariant: exactly one target, or a mistake that says what to leave out.
 */
import { fileURLToPath } from 'node:url'
import type { BusAddress } from '../../client/address.ts'
import { givenToken, namedAddress, type ReachOptions } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'
import { splitCommandLine } from './command-line.ts'

export interface ChatOptions extends ReachOptions {
  readonly agent?: string
  readonly pool?: string
  readonly demo?: boolean
}

export type Target =
  | { readonly kind: 'child'; readonly command: string; readonly args: readonly string[] }
  | {
      readonly kind: 'bus'
      readonly address: BusAddress
      readonly pool: string | undefined
      readonly token: (() => string) | undefined
    }

const openAiAgent = new URL('../../agents/openai/main.js', import.meta.url)

/** `command` is what followed `--`; with nothing named it is the demo. */
export function chooseTarget(options: ChatOptions, command: readonly string[]): Target {
  const named = [
    options.agent !== undefined && '--agent',
    options.unix !== undefined && '--unix',
    options.tcp !== undefined && '--tcp',
    options.tls !== undefined && '--tls',
    options.demo && '--demo',
    command.length > 0 && 'the command after --',
  ].filter((name) => typeof name === 'string')
  if (named.length > 1) throw new UserMistake(`${named.join(' and ')} name different agents; leave all but one out`)
  const { pool } = options
  const address = namedAddress(options)
  if (address !== undefined) return { kind: 'bus', address, pool, token: givenToken(options) }
  if (pool !== undefined)
    throw new UserMistake('--pool names a pool of a bus; say which bus with --unix, --tcp or --tls')
  if (options.agent !== undefined) return toChild(splitCommandLine(options.agent))
  if (command.length > 0) return toChild(command)
  return toChild([process.execPath, fileURLToPath(openAiAgent), '--demo'])
}

function toChild(words: readonly string[]): Target {
  const [command, ...args] = words
  if (!command) throw new UserMistake('--agent needs a command line, like --agent "opencode acp"')
  return { kind: 'child', command, args }
}
