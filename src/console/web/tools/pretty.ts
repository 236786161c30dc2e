/** JSON for people; a peer may nest it deeper than a browser goes. */
export function pretty(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? ''
  } catch {
    return '(nested too deeply to be shown)'
  }
}
