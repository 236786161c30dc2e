/** The configuration as an object: what the file holds. What is shipped is made of its JSON Schema (`scripts/config-type.mjs`). */
import type { z } from 'zod'
import type { configFile } from '../config/schema.ts'

export type ConfigObject = z.input<typeof configFile>
