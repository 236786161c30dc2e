/**
 * The corpus: inputs that were interesting once, one on each line of a file, replayed at the start of every run.
 *
 * A line is printable ASCII; `\xNN` is any other byte, `\\` a backslash and `\*9(ab)` nine times `ab`. Lines that begin
 * with `# ` say why the next ones are there.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const TOKEN = /\\\\|\\x([0-9a-f]{2})|\\\*(\d+)\(([^)]*)\)|[^\\]/g

/** Bytes as a line of the corpus; `special` characters are escaped too. */
export function escapeBytes(bytes, special = '#') {
  let line = ''
  for (const byte of bytes) {
    const char = String.fromCharCode(byte)
    if (char === '\\') line += '\\\\'
    else if (byte < 0x20 || byte > 0x7e || special.includes(char)) line += `\\x${byte.toString(16).padStart(2, '0')}`
    else line += char
  }
  return line
}

export function unescapeBytes(line) {
  const text = line.replace(TOKEN, (token, hex, count, repeated) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
    if (count !== undefined) return repeated.repeat(Number(count))
    return token === '\\\\' ? '\\' : token
  })
  return Buffer.from(text, 'latin1')
}

export class Corpus {
  #folder

  constructor(folder) {
    this.#folder = folder
  }

  /** The lines kept for a target. */
  lines(target) {
    const file = this.#file(target)
    if (!existsSync(file)) return []
    return readFileSync(file, 'latin1')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('# '))
  }

  keep(target, line) {
    if (!this.lines(target).includes(line)) appendFileSync(this.#file(target), `${line}\n`)
  }

  #file(target) {
    return join(this.#folder, `${target}.txt`)
  }
}
