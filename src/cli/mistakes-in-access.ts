/** What keeps a bus from starting that the configuration file does not show: its access file, and names that nobody has. */
import type { Problem } from '../config/problem.ts'
import type { Read } from '../config/read.ts'

/** Contract 9.9, 9.27. */
export async function mistakesInAccess(read: Read): Promise<readonly Problem[]> {
  if (read.config.access === undefined) return []
  const { checkAccess } = await import('../access/access-check.ts')
  return checkAccess({ ...read, environment: process.env }).filter(({ severity }) => severity === 'error')
}
