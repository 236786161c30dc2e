/**
 * Secrets of agents, from a file that nobody else can read.
 *
 * The values go into the environment of the agent at its start and nowhere else; no error of this file quotes any of its
 * content. The file is checked through the descriptor that is read, so what was checked is what is used.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { z } from 'zod'
import { parseJson } from './document.ts'
import { agentId, describeIssues, variables } from './entry.ts'
import { describeFailure, RegistryError } from './errors.ts'

const MAX_BYTES = 1024 * 1024

const agentCredentials = z
  .strictObject({
    env: variables.optional(),
    apiKey: z.string().optional(),
    apiKeyEnv: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not the name of a variable')
      .optional(),
  })
  .refine((agent) => (agent.apiKey === undefined) === (agent.apiKeyEnv === undefined), {
    message: '"apiKey" and "apiKeyEnv" (the variable it goes to) need each other',
  })

const credentialsFile = z.strictObject({
  version: z.union([z.string(), z.number()]),
  agents: z.record(agentId, agentCredentials),
})

/** Variables per agent id. */
export type Credentials = ReadonlyMap<string, Readonly<Record<string, string>>>

export async function readCredentials(path: string | undefined): Promise<Credentials> {
  if (path === undefined) return new Map()
  const parsed = parseJson(await readPrivate(path))
  if ('problem' in parsed) throw new RegistryError('credentials_unreadable', path, parsed.problem)
  const result = credentialsFile.safeParse(parsed.value)
  if (!result.success) throw new RegistryError('credentials_unreadable', path, describeIssues(result.error))
  return new Map(Object.entries(result.data.agents).map(([id, agent]) => [id, variablesOf(agent)]))
}

function variablesOf(agent: z.infer<typeof agentCredentials>): Record<string, string> {
  const { env = {}, apiKey, apiKeyEnv } = agent
  return apiKey === undefined || apiKeyEnv === undefined ? env : { ...env, [apiKeyEnv]: apiKey }
}

async function readPrivate(path: string): Promise<string> {
  let file: FileHandle | undefined
  try {
    // Non-blocking: a named pipe must not hold us up before it is refused.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    await requirePrivate(file, path)
    return await file.readFile('utf8')
  } catch (error) {
    if (error instanceof RegistryError) throw error
    throw new RegistryError('credentials_unreadable', path, describeFailure(error), error)
  } finally {
    await file?.close()
  }
}

async function requirePrivate(file: FileHandle, path: string): Promise<void> {
  const { mode, uid, size, ...kind } = await stateOf(file)
  if (!kind.isFile) throw new RegistryError('credentials_unreadable', path, 'it is not a file')
  if (size > MAX_BYTES) throw new RegistryError('credentials_unreadable', path, 'it is too large')
  if (process.platform === 'win32') return
  if ((mode & 0o077) !== 0) {
    throw new RegistryError('credentials_exposed', path, `its mode is ${(mode & 0o777).toString(8)}: chmod 600 ${path}`)
  }
  const own = process.getuid?.()
  if (uid !== own && uid !== 0) throw new RegistryError('credentials_exposed', path, 'it belongs to another user')
}

async function stateOf(file: FileHandle) {
  const state = await file.stat()
  return { mode: state.mode, uid: state.uid, size: state.size, isFile: state.isFile() }
}
