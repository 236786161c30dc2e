/**
 * One agent of the index, as data that has been checked.
 *
 * It refuses whatever could later become an option, another folder or another scheme: names are plain, commands of
 * archives are relative, packages are names or `file:` paths. Unknown keys are ignored: the format grows.
 */
import { z } from 'zod'
import { splitEntryPath } from './archive/entry-path.ts'
import { PLATFORMS } from './platform.ts'

const LONGEST_TEXT = 4_096
const MOST_ARGS = 256
const MOST_VARIABLES = 256

const text = z
  .string()
  .max(LONGEST_TEXT)
  .refine((value) => !value.includes('\0'), 'must not contain NUL')
const args = z.array(text).max(MOST_ARGS)

export const variables = z
  .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not the name of a variable'), text)
  .refine((record) => Object.keys(record).length <= MOST_VARIABLES, `has more than ${MOST_VARIABLES} variables`)

export const agentId = z
  .string()
  .max(64)
  .regex(/^[a-z][a-z0-9-]*$/, 'must be lower-case letters, digits and dashes')

const sha256 = z
  .string()
  .regex(/^(sha256:)?[0-9a-fA-F]{64}$/, 'must be 64 hexadecimal digits')
  .transform((value) => value.replace('sha256:', '').toLowerCase())

const binaryTarget = z
  .object({
    archive: text.refine(isAddress, 'must be an https, http or file address').optional(),
    cmd: text.min(1),
    args: args.optional(),
    env: variables.optional(),
    sha256: sha256.optional(),
  })
  .refine((target) => target.archive === undefined || (splitEntryPath(target.cmd) ?? []).length > 0, {
    path: ['cmd'],
    message: 'must be a path inside the archive',
  })

function isAddress(value: string): boolean {
  return /^(https?|file):\/\//.test(value) && URL.canParse(value)
}

const NPM_PACKAGE = /^((@[a-z0-9~._-]+\/)?[A-Za-z0-9~_][A-Za-z0-9~._-]*(@[A-Za-z0-9^~<>=.*+_-]+)?|file:\/.+)$/
const PYTHON_PACKAGE =
  /^([A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?((@|[=~<>!]=)[A-Za-z0-9.*+!_-]+)?|file:\/.+)$/
const program = text.regex(/^[A-Za-z0-9_][A-Za-z0-9._-]*$/, 'must be the plain name of a program')

const packageTarget = (form: RegExp) =>
  z.object({
    package: text.regex(form, 'must be a package name with a version, or file:<absolute path>'),
    cmd: program.optional(),
    args: args.optional(),
    env: variables.optional(),
  })

const distribution = z
  .object({
    // Keys of other platforms than the known six are somebody else's future.
    binary: z
      .record(z.string().max(64), z.unknown())
      .transform((targets) =>
        Object.fromEntries(PLATFORMS.filter((key) => key in targets).map((key) => [key, targets[key]])),
      )
      .pipe(z.partialRecord(z.enum(PLATFORMS), binaryTarget))
      .optional(),
    npx: packageTarget(NPM_PACKAGE).optional(),
    uvx: packageTarget(PYTHON_PACKAGE).optional(),
  })
  .refine(
    (kinds) => kinds.npx !== undefined || kinds.uvx !== undefined || Object.keys(kinds.binary ?? {}).length > 0,
    'must have at least one of binary, npx, uvx',
  )

export const agentEntry = z.object({
  id: agentId,
  name: text.min(1),
  version: z
    .string()
    .max(64)
    .regex(/^[0-9A-Za-z][0-9A-Za-z.+_-]*$/, 'must be a version such as 1.2.3'),
  description: text.default(''),
  website: text.optional(),
  repository: text.optional(),
  license: text.optional(),
  distribution,
})

export type AgentEntry = z.infer<typeof agentEntry>
export type BinaryTarget = z.infer<typeof binaryTarget>
export type PackageTarget = NonNullable<AgentEntry['distribution']['npx']>

/** All that is wrong with a value, on one line: the path and the rule, never the value. */
export function describeIssues(error: z.ZodError): string {
  return error.issues
    .slice(0, 5)
    .map((issue) => (issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message))
    .join('; ')
}
