/** acpx, a complete ACP client, with `stdio-bus connect` as its agent. */
import { binOf } from './inspector.mjs'

export async function runAcpx({ folder, connectTo, runPackage, check }) {
  const bin = binOf(folder, 'acpx')
  const agent = connectTo('agent').join(' ')
  const exec = (prompt) => runPackage(bin, ['--agent', agent, '--approve-all', '--format', 'quiet', 'exec', prompt])
  const echo = await exec('echo hello from acpx')
  check('acpx: a prompt', echo.code === 0 && echo.stdout.includes('hello from acpx'), echo)
  const permission = await exec('permission')
  check(
    'acpx: a permission question',
    permission.code === 0 && permission.stdout.includes('permission: selected yes'),
    permission,
  )
  const together = await Promise.all([1, 2, 3].map((n) => exec(`echo number ${n}`)))
  check(
    'acpx: three at once',
    together.every(({ stdout }, n) => stdout.includes(`number ${n + 1}`)),
    together,
  )
}
