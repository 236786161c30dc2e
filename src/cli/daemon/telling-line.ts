/**
 * Which of the lines that a program writes before it ends says why: the message of its error, not what its runtime puts
 * behind it. It knows the habits of runtimes and nothing of any program, and judges a line by itself.
 */
const SAYS_NOTHING: readonly RegExp[] = [
  // What goes on from the line before: frames of a stack, fields of an error, marks beneath source code.
  /^\s/,
  /^[\s^~}\])]*$/,
  /^Node\.js v\d/,
  /^npm (?:error|ERR!) (?:A complete log of this run|\s*\/|$)/,
  /^npm notice/,
  /^note: run with `RUST_BACKTRACE/,
  /^exit status \d+$/,
]

export function isTelling(line: string): boolean {
  return SAYS_NOTHING.every((pattern) => !pattern.test(line))
}
