/**
 * The names that an archive may use: relative, downward, and the same on every system.
 *
 * A name is judged by its text alone, before anything touches the disk.
 */
const LONGEST_NAME = 1_024

/** The parts of a name below the root (none for the root itself), or undefined when it leaves it or could elsewhere. */
export function splitEntryPath(name: string): readonly string[] | undefined {
  if (name.length > LONGEST_NAME || name.includes('\0') || name.includes('\\')) return undefined
  if (name.startsWith('/') || /^[A-Za-z]:/.test(name)) return undefined
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  return parts.includes('..') ? undefined : parts
}

/**
 * Whether a symbolic link that lies `depth` folders below the root stays inside with this target.
 *
 * Steps upward may only come first: they are then taken from a real folder. After the name of another link they would
 * start wherever that one leads, and no look at the text could bound them.
 */
export function staysInside(target: string, depth: number): boolean {
  if (target === '' || target.length > LONGEST_NAME || target.includes('\0') || target.includes('\\')) return false
  if (target.startsWith('/') || /^[A-Za-z]:/.test(target)) return false
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const firstName = parts.findIndex((part) => part !== '..')
  const climbs = firstName === -1 ? parts.length : firstName
  return climbs <= depth && !parts.slice(climbs).includes('..')
}
