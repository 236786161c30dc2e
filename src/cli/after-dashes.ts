/** What follows `--` on a command line; commander hands over the words on both sides of it as one list. */
export function afterDashes(argv: readonly string[]): readonly string[] {
  const dashes = argv.indexOf('--')
  return dashes === -1 ? [] : argv.slice(dashes + 1)
}
