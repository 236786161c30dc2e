/**
 * `npm run interop`: complete programs from the npm registry through the real daemon and `stdio-bus connect`. Needs a network and
 * some minutes, so it is no part of `npm test`. STDIO_BUS_MAIN names another build.
 */
import { readOptions } from '../support/options.mjs'
import { runAcpx } from './big/acpx.mjs'
import { runAggregate } from './big/aggregate.mjs'
import { runHosts } from './big/hosts.mjs'
import { runInspector } from './big/inspector.mjs'
import { openStage } from './big/stage.mjs'
import { runUrls } from './big/urls.mjs'

readOptions(
  `usage: npm run interop: complete programs from the npm registry through the daemon, by "stdio-bus connect" and by URL

It takes no options. It needs a network and some minutes; STDIO_BUS_MAIN names another build. Exit 1 when one fails.`,
  {},
)

let failures = 0

function check(what, isRight, seen) {
  console.log(`${isRight ? 'ok    ' : 'FAILED'} ${what}`)
  if (isRight) return
  failures++
  console.log(JSON.stringify(seen, null, 2))
}

console.log('installing the programs into a temporary folder ...')
const stage = await openStage()
try {
  for (const part of [runInspector, runUrls, runAggregate, runHosts, runAcpx]) await part({ ...stage, check })
} finally {
  await stage.close()
}
console.log(failures === 0 ? 'all is well' : `${failures} failed`)
process.exitCode = failures === 0 ? 0 : 1
