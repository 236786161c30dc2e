/**
 * A private copy of the built program: somebody who builds again in the middle of a run changes nothing of it.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const ATTEMPTS = 3

export class Program {
  /** Everything of a run lies below; the name is short because socket paths are. */
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sb-chaos-')))
  main = join(this.folder, 'dist/cli/main.js')

  constructor() {
    cpSync(join(ROOT, 'package.json'), join(this.folder, 'package.json'))
    symlinkSync(join(ROOT, 'node_modules'), join(this.folder, 'node_modules'))
    for (let attempt = 1; !this.#copy(); attempt++) {
      if (attempt === ATTEMPTS) throw new Error('the built program does not run: look at `node scripts/build.mjs`')
    }
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #copy() {
    const built = spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, encoding: 'utf8' })
    if (built.status !== 0) throw new Error(`the build failed:\n${built.stdout}${built.stderr}`)
    rmSync(join(this.folder, 'dist'), { recursive: true, force: true })
    try {
      cpSync(join(ROOT, 'dist'), join(this.folder, 'dist'), { recursive: true })
    } catch {
      return false // somebody else is building right now
    }
    return spawnSync(process.execPath, [this.main, '--version']).status === 0
  }
}
