/** The command line of the MCP Inspector, with `stdio-bus connect` as its server. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export async function runInspector({ folder, connectTo, runPackage, check }) {
  const bin = binOf(folder, '@modelcontextprotocol/inspector')
  const ask = (...args) => runPackage(bin, ['--cli', ...connectTo('everything'), ...args])
  const list = await ask('--method', 'tools/list')
  check('inspector: tools/list', list.code === 0 && list.stdout.includes('"echo"'), list)
  const call = await ask('--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=through-the-bus')
  check('inspector: tools/call', call.code === 0 && call.stdout.includes('Echo: through-the-bus'), call)
  const together = await Promise.all(
    [1, 2, 3].map((n) => ask('--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', `message=n${n}`)),
  )
  check(
    'inspector: three at once',
    together.every(({ stdout }, n) => stdout.includes(`Echo: n${n + 1}`)),
    together,
  )
  const resources = await ask('--method', 'resources/list')
  check('inspector: resources/list', resources.code === 0 && resources.stdout.includes('"uri"'), resources)
}

/** The program of a package, relative to node_modules. */
export function binOf(folder, name) {
  const { bin } = JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8'))
  return join(name, typeof bin === 'string' ? bin : Object.values(bin)[0])
}
