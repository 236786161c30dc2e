/**
 * Changes the configuration file in place, as a careful person would: only what is meant, never into something that the
 * bus would refuse, and never a file that is broken already.
 *
 * Variables that are not set here do not count: the bus may be started elsewhere.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { type FileTraits, replaceFile } from '../host/replace-file.ts'
import type { Environment } from './environment.ts'
import type { Problem } from './problem.ts'
import { parseConfig, type Read } from './read.ts'

/** A file that is not as it must be, or would not be; the problems say where. */
export class ConfigEditFailure extends Error {
  override readonly name = 'ConfigEditFailure'
  readonly problems: readonly Problem[]

  constructor(message: string, problems: readonly Problem[]) {
    super(message)
    this.problems = problems
  }
}

/** What a file begins with that is made by the first edit. */
const EMPTY = `// Configuration of stdio Bus. "stdio-bus init" in an empty folder writes one that explains every option.
{
  "pools": [],

  // The longest line in bytes. Agents send an image as one line of base64.
  "limits": { "max_input_buffer": 33554432 },
}
`

/** The new configuration, which is on disk. A file that is not there is made. */
export async function editConfig(path: string, change: (text: string) => string): Promise<Read> {
  const file = behindLinks(path)
  let result: Read | undefined
  await replaceFile(file, () => {
    const { text, traits } = readCurrent(file, path)
    const changed = change(text)
    const reading = parseConfig(path, changed, { environment: TOLERANT })
    if (!reading.ok)
      throw new ConfigEditFailure(`${path} would not be right any more and stays as it is`, reading.problems)
    result = reading
    return { text: changed, ...traits }
  })
  return result!
}

/** What the bus would have against such a text of the file. */
export function problemsIn(path: string, text: string): readonly Problem[] {
  const reading = parseConfig(path, text, { environment: TOLERANT })
  return reading.ok ? [] : reading.problems
}

function readCurrent(file: string, path: string): { text: string; traits: FileTraits } {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (stats === undefined) return { text: EMPTY, traits: { mode: 0o600 } }
  if (!stats.isFile()) throw new ConfigEditFailure(`${path} is no file: name the file itself`, [])
  const text = readFileSync(file, 'utf8')
  const reading = parseConfig(path, text, { environment: TOLERANT })
  if (!reading.ok) throw new ConfigEditFailure(`${path} has mistakes: correct them first`, reading.problems)
  return { text, traits: { mode: stats.mode & 0o777, owner: stats } }
}

/** The file itself is replaced, not a link to it. */
function behindLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** The environment of this program, in which every other name is set to nothing. */
const TOLERANT: Environment = new Proxy(process.env, { get: (known, name) => known[String(name)] ?? '' })
