/**
 * A fresh clone in a scratch folder: the files of this tree as they are now, without anything installed or built, in a
 * repository of their own.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ROOT } from './shipped.ts'

export class Scratch {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'sb-package-')))

  path(...names: string[]): string {
    return join(this.folder, ...names)
  }

  clone(name: string): string {
    for (const file of sourceFiles()) {
      mkdirSync(dirname(this.path(name, file)), { recursive: true })
      cpSync(join(ROOT, file), this.path(name, file), { errorOnExist: false })
    }
    return this.path(name)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The files of this tree that are no product of others. */
export function sourceFiles(): string[] {
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT })
  return list.toString().split('\0').filter(Boolean)
}

/** Runs npm as a person would, who has downloaded before what the lock file names; gives stdout, or fails with all it said. */
export function npm(cwd: string, args: readonly string[], env: Record<string, string> = {}): string {
  const { status, stdout, stderr } = spawnSync('npm', [...args, '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd,
    env: { ...outsideEnvironment(), ...env },
    encoding: 'utf8',
    timeout: 170_000,
  })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with ${status}:\n${stdout}\n${stderr}`)
  return stdout
}

/** Without what npm tells the scripts that it runs, this test among them. */
export function outsideEnvironment(): Record<string, string> {
  const own = Object.entries(process.env).filter(([name, value]) => value !== undefined && !/^npm_/i.test(name))
  return Object.fromEntries(own) as Record<string, string>
}
