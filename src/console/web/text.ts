/** Text of peers as it may be shown, and figures as people read them (contract 15.17). */
import { printable, printableProse } from '../../wire/printable.ts'

/** Whatever a peer put where text belongs; an object of its making need not know how to become one. */
export function wordsOf(value: unknown): string {
  if (typeof value !== 'object') return value === undefined ? '' : String(value)
  try {
    return value === null ? '' : JSON.stringify(value)
  } catch {
    return '…'
  }
}

/** For running text. */
export function shown(text: unknown): string {
  return printableProse(wordsOf(text))
}

/** In one line, cut. */
export function brief(text: unknown, most = 120): string {
  const line = printable(wordsOf(text).replace(/\s+/g, ' ').trim())
  return line.length > most ? `${line.slice(0, most - 1)}…` : line
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`
  const units = ['KiB', 'MiB', 'GiB']
  let value = count / 1024
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

export function count(value: number): string {
  return value.toLocaleString('en')
}

/** A number of things, by what one of them is called. */
export function counted(value: number, one: string): string {
  return `${count(value)} ${one}${value === 1 ? '' : 's'}`
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const minutes = Math.floor(ms / 60_000)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** The time of day, and the day where it is another. */
export function clock(iso: string): string {
  const date = new Date(iso)
  const time = date.toLocaleTimeString([], { hour12: false })
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString()} ${time}`
}
