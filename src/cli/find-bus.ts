/**
 * Finds the bus of this user that a client is to be connected to: the only one, of several the one with the configuration of
 * this folder, or the one with a configuration that is named.
 *
 * Found from HOME alone, because hosts strip the environment. Only doors that ask for no certificate are taken: a Unix
 * socket before TCP. Connects to nothing.
 */
import { type BusAddress, parseAnnounced, showAddress } from '../client/address.ts'
import { BusUnavailable } from '../client/errors.ts'
import { findRunning, preferHere, realPath } from '../console/running.ts'
import { UserMistake } from './user-mistake.ts'

/** The only bus of this user that can be connected to, or the one with this configuration; fails when there is none. */
export async function findAddress(config?: string): Promise<BusAddress> {
  const found = await lookForAddress(config)
  if (found !== undefined) return found
  const which = config === undefined ? 'for this user' : `with ${config}`
  throw new BusUnavailable(`no bus with a Unix socket or TCP door runs ${which}`)
}

/** The same; undefined when there is none. */
export async function lookForAddress(config?: string): Promise<BusAddress | undefined> {
  const wanted = config === undefined ? undefined : realPath(config)
  const open = (await findRunning())
    .filter((bus) => wanted === undefined || realPath(bus.config) === wanted)
    .filter((bus) => chooseDoor(bus.addresses) !== undefined)
  const addresses = preferHere(open).map((bus) => chooseDoor(bus.addresses)!)
  if (addresses.length <= 1) return addresses[0]
  const list = addresses.map(showAddress).join(', ')
  throw new UserMistake(`several buses run (${list}): name one with --unix, --tcp or --config`)
}

function chooseDoor(announced: readonly string[]): BusAddress | undefined {
  const addresses = announced.map(parseAnnounced).filter((address) => address !== undefined)
  return addresses.find((address) => 'unix' in address) ?? addresses[0]
}
