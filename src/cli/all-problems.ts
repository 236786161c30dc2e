/** Everything that can be said about a configuration: its own mistakes, those of this machine, of certificates and of the access file. */
import { checkAccess } from '../access/access-check.ts'
import { checkCertificates } from '../access/certificate-check.ts'
import { type CheckContext, checkMachine } from '../config/check.ts'
import { byPlace, type Problem } from '../config/problem.ts'
import type { Reading } from '../config/read.ts'

export async function allProblemsOf(
  reading: Reading,
  environment: NodeJS.ProcessEnv,
  flags: Pick<CheckContext, 'allowUnauthenticated'> = {},
): Promise<readonly Problem[]> {
  if (reading.ok) return everythingOf({ ...reading, environment, ...flags }, [])
  if (reading.draft === undefined) return reading.problems
  return everythingOf({ ...reading.draft, environment, ...flags }, reading.problems)
}

/** Those of the configuration in its order, then those of the access file in its own. */
async function everythingOf(context: CheckContext, known: readonly Problem[]): Promise<readonly Problem[]> {
  const access = checkAccess(context)
  const isOwn = ({ file }: Problem): boolean => file === context.source.file
  const machine = [...(await checkMachine(context)), ...checkCertificates(context)]
  const cluster = context.config.cluster === undefined || known.length > 0 ? [] : await clusterProblems(context)
  const own = [...known, ...machine, ...cluster, ...access.filter(isOwn)].sort(byPlace)
  return [...own, ...access.filter((problem) => !isOwn(problem))]
}

/** Only a node of many loads what that needs. */
async function clusterProblems(context: CheckContext): Promise<Problem[]> {
  const { checkCluster } = await import('./cluster-check.ts')
  return checkCluster(context)
}
