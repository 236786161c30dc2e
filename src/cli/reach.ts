/**
 * The options by which a command is told where a bus is and who asks: read, held against each other, and nothing connected.
 */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { type BusAddress, parseTcp } from '../client/address.ts'
import { readTokenFile } from '../client/token.ts'
import { tokenFromEnvironment } from './token-variable.ts'
import { UserMistake } from './user-mistake.ts'

export interface ReachOptions {
  readonly unix?: string
  readonly tcp?: string
  readonly tls?: string
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly tokenFile?: string
}

/** Adds `--tcp`, `--tls` and what goes with them; `--unix` means something else to each command. */
export function addReachOptions(command: Command): Command {
  return command
    .option('--tcp <host:port>', 'the TCP address of the bus')
    .option('--tls <host:port>', 'its TLS address')
    .option('--ca <file>', 'with TLS: who has signed its certificate (default: the authorities of the runtime)')
    .option('--cert <file>', 'with TLS: the certificate of this client')
    .option('--key <file>', 'with TLS: its key')
    .option('--token-file <file>', 'the token of this client (or the variable STDIO_BUS_TOKEN)')
}

/** The one bus that is named, if one is. */
export function namedAddress({ unix, tcp, tls, ca, cert, key }: ReachOptions): BusAddress | undefined {
  const named = Object.entries({ '--unix': unix, '--tcp': tcp, '--tls': tls }).filter(
    ([, value]) => value !== undefined,
  )
  if (named.length > 1) {
    throw new UserMistake(`${named.map(([flag]) => flag).join(' and ')} name different buses: leave all but one out`)
  }
  const stray = Object.entries({ '--ca': ca, '--cert': cert, '--key': key }).find(([, value]) => value !== undefined)
  if (tls === undefined && stray !== undefined) throw new UserMistake(`${stray[0]} goes with --tls HOST:PORT`)
  if (unix !== undefined) return { unix: resolve(unix) }
  if (tcp !== undefined) return { tcp: parseFlag('--tcp', tcp) }
  return tls === undefined ? undefined : { tls: parseFlag('--tls', tls), files: { ca, cert, key } }
}

function parseFlag(flag: string, text: string): ReturnType<typeof parseTcp> {
  try {
    return parseTcp(text)
  } catch (cause) {
    throw new UserMistake(`${flag}: ${(cause as Error).message}`, { cause })
  }
}

/** Whether a door is named, for a command that else asks the control socket, which asks nobody for a token. */
export function namesDoor(options: ReachOptions): boolean {
  if (namedAddress(options) !== undefined) return true
  if (options.tokenFile !== undefined) throw new UserMistake('--token-file goes with --tcp or --tls')
  return false
}

/** What this client proves itself with. The file is read now, for its mistakes to be told, and again for each connection. */
export function givenToken({ tokenFile }: ReachOptions): (() => string) | undefined {
  if (tokenFile !== undefined) {
    readTokenFile(tokenFile)
    return () => readTokenFile(tokenFile)
  }
  const token = tokenFromEnvironment()
  return token === undefined ? undefined : () => token
}
