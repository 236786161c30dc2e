/**
 * The options of a runner: what it takes is written once, and `--help` says it without running anything.
 *
 * `usage` is what people read; `options` is what `parseArgs` takes. A wrong option is exit 2.
 */
import { parseArgs } from 'node:util'

export function readOptions(usage, options) {
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', short: 'h', default: false } } })
    if (!values.help) return values
    console.log(usage.trim())
    process.exit(0)
  } catch (error) {
    console.error(`${error.message}\n\n${usage.trim()}`)
    process.exit(2)
  }
}
