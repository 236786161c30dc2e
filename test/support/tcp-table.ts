/** The table of TCP connections as the operating system shows it; Linux only. */
import { existsSync, readFileSync } from 'node:fs'

const ESTABLISHED = '01'
/** The value of the timer column while a keepalive timer runs. */
export const KEEPALIVE_TIMER = '02'

/** The timer of the accepted end of a connection to `port`. */
export function tcpTimer(port: number): string | undefined {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const row = rows().find((columns) => columns[1]?.endsWith(local) && columns[3] === ESTABLISHED)
  return row?.[5]?.slice(0, 2)
}

function rows(): string[][] {
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .map((line) => line.trim().split(/\s+/))
}
