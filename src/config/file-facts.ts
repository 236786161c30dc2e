/** What the file system says of a path; a path that cannot be looked at does not exist. Opens and changes nothing. */
import { stat } from 'node:fs/promises'

export type Kind = 'file' | 'directory' | 'other' | 'missing'

export async function kindOf(path: string): Promise<Kind> {
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) return 'missing'
  if (found.isDirectory()) return 'directory'
  return found.isFile() ? 'file' : 'other'
}

const SAID: Record<Kind, string> = {
  file: 'which is a file',
  directory: 'which is a directory',
  other: 'which is neither file nor directory',
  missing: 'which does not exist',
}

export function said(kind: Kind): string {
  return SAID[kind]
}

/** The permission bits; 0 where there are none, as on Windows or for a path that does not exist. */
export async function modeOf(path: string): Promise<number> {
  if (process.platform === 'win32') return 0
  return (await stat(path).catch(() => undefined))?.mode ?? 0
}
