/** The version of the package, read once. */

// Importing it would make telling the version a tenth slower.
const { readFileSync } = process.getBuiltinModule('node:fs')

export const VERSION: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
