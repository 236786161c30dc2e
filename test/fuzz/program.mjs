/**
 * A private copy of the built program: somebody who builds again in the middle of a run changes nothing of it.
 *
 * It never builds by itself. A copy that was taken while somebody built does not run, and is taken again.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sleep } from '../chaos/stage/waiting.mjs'

const ATTEMPTS = 10
const RETRY_MS = 2_000

export class Program {
  /** Everything of a run lies below; the name is short because socket paths are. */
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sb-fuzz-')))
  main = join(this.folder, 'dist/cli/main.js')

  /** Copies what was built in `root`. */
  static async copyOf(root) {
    const program = new Program()
    cpSync(join(root, 'package.json'), join(program.folder, 'package.json'))
    symlinkSync(realpathSync(join(root, 'node_modules')), join(program.folder, 'node_modules'))
    for (let attempt = 1; !program.#copy(root); attempt++) {
      if (attempt === ATTEMPTS) throw new Error('the built program does not run: run `npm run build` and look there')
      await sleep(RETRY_MS)
    }
    return program
  }

  /** A module of the copy, by its path in dist/. */
  load(path) {
    return import(pathToFileURL(join(this.folder, 'dist', path)).href)
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #copy(root) {
    rmSync(join(this.folder, 'dist'), { recursive: true, force: true })
    try {
      cpSync(join(root, 'dist'), join(this.folder, 'dist'), { recursive: true })
    } catch {
      return false // somebody is building right now
    }
    return spawnSync(process.execPath, [this.main, '--version']).status === 0
  }
}
