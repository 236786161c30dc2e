/** Runs `stdio-bus ...` against the bus of the example, which keeps everything in a folder of its own. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export const execute = {
  async makePlace() {
    const folder = await mkdtemp(join(tmpdir(), 'bus-'))
    const remove = () => rm(folder, { recursive: true, force: true })
    return { folder, control: join(folder, 'control.sock'), remove }
  },

  async command({ folder, control }, ...args) {
    const env = { ...process.env, HOME: folder }
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args, '--control', control], { env })
    return stdout
  },
}
