/**
 * Splits a command line into words, as people write it in quotes.
 *
 * No shell is ever started, so nothing is expanded: quotes group, a backslash takes the next character as it is.
 */
import { UserMistake } from '../user-mistake.ts'

const word = /\s*((?:[^\s"'\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*")+)\s*/y
const piece = /\\([\s\S])|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|([^\s"'\\]+)/g

export function splitCommandLine(text: string): string[] {
  const words: string[] = []
  for (let at = 0; at < text.length; at = word.lastIndex) {
    word.lastIndex = at
    const found = word.exec(text)
    if (!found) {
      if (text.slice(at).trim() === '') break
      throw new UserMistake(`the command line ${JSON.stringify(text)} has a quote that does not end`)
    }
    words.push(unquote(found[1]!))
  }
  return words
}

function unquote(quoted: string): string {
  return quoted.replace(piece, (_, escaped, single, double, plain) => {
    return escaped ?? single ?? double?.replace(/\\([\s\S])/g, '$1') ?? plain
  })
}
