/**
 * A hostile client in a process of its own, at the lowest priority. Arguments: the attack, the address, a scale from 0 to 1.
 * Tells its books at the end.
 */
import { setPriority } from 'node:os'
import { ATTACKS } from '../attacks/table.mjs'

const [name, address, scale] = process.argv.slice(2)
setPriority(19)
const books = await ATTACKS[name].run(address, Number(scale))
process.send(books, () => process.exit())
