/**
 * What a stream can show: whether to colour what goes there and to move its cursor, and a time as people at it read it.
 *
 * NO_COLOR, FORCE_COLOR and TERM=dumb are obeyed here, and nowhere else is asked. Nothing is written.
 */

/** As much of a stream as it takes to tell. */
export interface Shown {
  readonly isTTY?: boolean | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** A terminal that colours; NO_COLOR wins over FORCE_COLOR. */
export function wantsColor(stream: Shown, environment: Environment = process.env): boolean {
  if (environment['NO_COLOR']) return false
  return environment['FORCE_COLOR'] ? environment['FORCE_COLOR'] !== '0' : canMoveCursor(stream, environment)
}

/** A terminal on which a line can be written over and the screen cleared. */
export function canMoveCursor(stream: Shown, environment: Environment = process.env): boolean {
  return stream.isTTY === true && environment['TERM'] !== 'dumb'
}

/** `14:03:22.123+02:00`: the clock where the reader is, and which clock that is. */
export function showClock(atMs: number): string {
  const at = new Date(atMs)
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => pad(part)).join(':')
  return `${clock}.${pad(at.getMilliseconds(), 3)}${zoneOf(at)}`
}

/** `2026-03-01 14:03:22+01:00`. */
export function showTime(atMs: number): string {
  const at = new Date(atMs)
  const day = [at.getFullYear(), pad(at.getMonth() + 1), pad(at.getDate())].join('-')
  return `${day} ${showClock(atMs).slice(0, 'HH:MM:SS'.length)}${zoneOf(at)}`
}

function zoneOf(at: Date): string {
  const minutes = -at.getTimezoneOffset()
  const sign = minutes < 0 ? '-' : '+'
  return `${sign}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`
}

function pad(part: number, digits = 2): string {
  return String(part).padStart(digits, '0')
}
