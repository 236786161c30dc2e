/** An aggregate of public MCP servers, used by the MCP Inspector as its one server (contract 13). */
import { binOf } from './inspector.mjs'

/** The servers, and a tool of each under its listed name. */
export const SERVERS = {
  files: { name: '@modelcontextprotocol/server-filesystem', tool: 'files_read_text_file' },
  memory: { name: '@modelcontextprotocol/server-memory', tool: 'memory_create_entities' },
  thinking: { name: '@modelcontextprotocol/server-sequential-thinking', tool: 'thinking_sequentialthinking' },
  everything: { name: undefined, tool: 'everything_echo' },
}

export async function runAggregate({ folder, connectTo, runPackage, check }) {
  const bin = binOf(folder, '@modelcontextprotocol/inspector')
  const ask = (pool, ...args) => runPackage(bin, ['--cli', ...connectTo(pool), ...args])
  const call = (pool, tool, ...args) =>
    ask(pool, '--method', 'tools/call', '--tool-name', tool, ...args.flatMap((arg) => ['--tool-arg', arg]))
  const list = await ask('all', '--method', 'tools/list')
  for (const [member, { tool }] of Object.entries(SERVERS))
    check(`aggregate: ${member} is listed`, list.code === 0 && list.stdout.includes(`"${tool}"`), list)
  const echo = await call('all', 'everything_echo', 'message=made-of-many')
  check('aggregate: a call reaches its member', echo.stdout.includes('Echo: made-of-many'), echo)
  const read = await call('all', 'files_read_text_file', `path=${folder}/note.txt`)
  check('aggregate: a file is read', read.stdout.includes('a note for the aggregate'), read)
  const entities = 'entities=[{"name":"bus","entityType":"thing","observations":["is made of many"]}]'
  await call('all', 'memory_create_entities', entities)
  const known = await call('all', 'memory_search_nodes', 'query=bus')
  check('aggregate: what one client tells the memory another finds', known.stdout.includes('is made of many'), known)
  const resources = await ask('all', '--method', 'resources/list')
  check('aggregate: resources keep their URIs', resources.code === 0 && resources.stdout.includes('"uri"'), resources)
  const prompts = await ask('all', '--method', 'prompts/list')
  check('aggregate: prompts have their prefix', prompts.stdout.includes('"everything_'), prompts)
  const few = await ask('find', '--method', 'tools/list')
  check(
    'search: two tools are listed',
    few.stdout.includes('"find_tools"') && !few.stdout.includes('everything_echo'),
    few,
  )
  const found = await call('find', 'find_tools', 'query=read the text of a file')
  check('search: the tool is found', found.stdout.includes('files_read_text_file'), found)
  const through = await call('find', 'call_tool', 'name=everything_echo', 'arguments={"message":"found-and-called"}')
  check('search: and called', through.stdout.includes('Echo: found-and-called'), through)
}
