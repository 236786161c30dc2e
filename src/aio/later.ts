/** A timer of the port, or of the system where it has none. */
import type { GatewayPort } from './port.ts'

/** What it returns gives it up. */
export function after(port: Pick<GatewayPort, 'after'>, delayMs: number, run: () => void): () => void {
  if (port.after !== undefined) return port.after(delayMs, run)
  const timer = setTimeout(run, delayMs)
  return () => clearTimeout(timer)
}
