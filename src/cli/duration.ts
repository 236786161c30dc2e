/** A span of time as people write it in flags: `90s`, `15m`, `12h`, `30d`. */
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** In milliseconds; undefined when the text is none. */
export function readDuration(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (UNIT_MS[unit] ?? 0)
}
