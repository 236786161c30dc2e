/**
 * Names for the functions offered to the model: within what endpoints allow, and unique over all servers.
 *
 * The server's own name of a tool is never changed; these names are only how the model says it.
 */

const maxNameChars = 64

/** A function name for each tool, in the same order. */
export function nameFunctions(tools: ReadonlyArray<{ server: string; tool: string }>): string[] {
  const taken = new Set<string>()
  return tools.map(({ server, tool }) => {
    const name = candidates(server, tool).find((candidate) => !taken.has(candidate)) ?? numbered(tool, taken)
    taken.add(name)
    return name
  })
}

function candidates(server: string, tool: string): string[] {
  return [clean(tool), clean(`${server}_${tool}`)]
}

function numbered(tool: string, taken: ReadonlySet<string>): string {
  for (let number = 2; ; number++) {
    const suffix = `_${number}`
    const name = clean(tool).slice(0, maxNameChars - suffix.length) + suffix
    if (!taken.has(name)) return name
  }
}

function clean(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, maxNameChars) || 'tool'
}
