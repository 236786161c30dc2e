/**
 * Closes what the bus itself was given beyond its three descriptors, so that no worker can inherit it (contract 5.4).
 *
 * The runtime marks its own descriptors as not inheritable, and of those it was born with only the lower ones. Whatever is
 * left unmarked came from whoever started us and is of no use here. To be called once, before anything else. Where there is
 * no list (macOS), there is no need: the runtime starts processes there with the descriptors that it names and no others.
 */
import { closeSync, readdirSync, readFileSync } from 'node:fs'

const CLOSE_ON_EXEC = 0o2_000_000
const STANDARD = 3

/** Closes every inheritable descriptor above the standard three; where the system does not list them, does nothing. */
export function closeInheritedDescriptors(): void {
  // A parent that speaks to us over such a channel is a test or a tool, and needs it.
  if (process.channel) return
  for (const descriptor of listDescriptors()) {
    if (descriptor >= STANDARD && isInheritable(descriptor)) close(descriptor)
  }
}

function listDescriptors(): number[] {
  try {
    return readdirSync('/proc/self/fdinfo').map(Number)
  } catch {
    return []
  }
}

function isInheritable(descriptor: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1]
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0
  } catch {
    // It was the descriptor of the listing itself.
    return false
  }
}

function close(descriptor: number): void {
  try {
    closeSync(descriptor)
  } catch {
    // Gone already, which is what was wanted.
  }
}
