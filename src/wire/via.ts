/**
 * The ids of buses as the header `Stdio-Bus-Via` carries them (contract 11.6): written for upstreams, read by doors. Whether a
 * way is refused is for the kernel to say.
 */
export const VIA_HEADER = 'stdio-bus-via'
/** The status of a way that is refused. */
export const LOOP_STATUS = 508

export function writeVia(via: readonly string[]): string {
  return via.join(', ')
}

/** Undefined: whoever sends it came through no bus that says so. */
export function readVia(header: string | undefined): readonly string[] | undefined {
  const ids = (header ?? '')
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '')
  return ids.length === 0 ? undefined : ids
}

/** Why a way is refused, for people. */
export const LOOP = 'the way leads back to a bus that it has passed, or through too many of them'
