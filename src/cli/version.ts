/** The version of the package, read once. */
import { readFileSync } from 'node:fs'

export const VERSION: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
