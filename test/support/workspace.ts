/**
 * A temporary folder that is the whole world of one bus: its working directory, its HOME, its sockets, its workers'
 * files. When it is removed, every process that works in it is ended first, however the test went.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { descendantsOf, killHard, processesWorkingIn } from './processes.ts'
import { eventually } from './waiting.ts'

export class Workspace {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'sb-')))
  readonly home = join(this.folder, 'home')
  readonly #roots: number[] = []

  constructor() {
    mkdirSync(this.home)
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  write(name: string, content: string | object): string {
    writeFileSync(this.path(name), typeof content === 'string' ? content : JSON.stringify(content, null, 2))
    return this.path(name)
  }

  /** A file that is its owner's alone, put whole into the place of the old one. */
  writeOwn(name: string, content: string | object): string {
    const draft = this.write(`${name}.new`, content)
    chmodSync(draft, 0o600)
    renameSync(draft, this.path(name))
    return this.path(name)
  }

  /** The content of a file that may not exist yet. */
  read(name: string): string {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : ''
  }

  lines(name: string): string[] {
    return this.read(name).split('\n').filter(Boolean)
  }

  /** The program `pid` and everything below it end with this folder. */
  owns(pid: number | undefined): void {
    if (pid !== undefined) this.#roots.push(pid)
  }

  async remove(): Promise<void> {
    for (const pid of this.#roots.flatMap((root) => [...descendantsOf(root), root])) killHard(pid)
    await eventually('the processes of the test to end', () => {
      const left = processesWorkingIn(this.folder)
      for (const pid of left) killHard(pid)
      return left.length === 0
    })
    rmSync(this.folder, { recursive: true, force: true })
  }
}
