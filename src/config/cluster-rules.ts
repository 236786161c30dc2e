/** What the section `cluster` demands of the rest of the file (contract 14.1, 14.2). */
import { hostname } from 'node:os'
import { type Environment, expandReferences } from './environment.ts'
import { type Finding, type Path, quote } from './problem.ts'
import { asObject, poolsOf, type Raw } from './raw-file.ts'

const SCHEME = /^([a-z]+):\/\//

/** The name of the host as a node can have it; undefined: nothing of it can be used. */
export function nodeOfHost(host: string = hostname()): string | undefined {
  const name = host
    .split('.')[0]!
    .replace(/[^A-Za-z0-9_-]/g, '-')
    .slice(0, 64)
  return name === '' || name === 'all' ? undefined : name
}

export function clusterFindings(file: Raw, environment: Environment): Finding[] {
  const cluster = asObject(file['cluster'])
  if (cluster === undefined) return poolsAreThere(file)
  const { node, nats, tls } = cluster
  const path: Path = ['cluster']
  const urls = (Array.isArray(nats) ? nats : [nats]).filter((url) => typeof url === 'string')
  const files = asObject(tls) ?? {}
  return [
    ...(node === undefined && nodeOfHost() === undefined
      ? [
          {
            path,
            found: 'no "node", and a host name that is none',
            allowed: 'a "node" of letters, digits, "_" and "-"',
          },
        ]
      : []),
    ...urls.flatMap((url, index) =>
      natsFindings(url, Array.isArray(nats) ? [...path, 'nats', index] : [...path, 'nats'], environment),
    ),
    ...areOfOneKind(urls, [...path, 'nats']),
    ...pairFindings(files, [...path, 'tls']),
    ...poolsOf(file).flatMap(({ entry, path: place }) => placeFindings(entry, place)),
  ]
}

/** A bus that is alone has something to serve; a node of many may only let clients in. */
function poolsAreThere(file: Raw): Finding[] {
  if (!Array.isArray(file['pools']) || file['pools'].length > 0) return []
  return [{ path: ['pools'], found: 'an empty list', allowed: 'at least 1 pool, unless there is a "cluster"' }]
}

function natsFindings(url: string, path: Path, environment: Environment): Finding[] {
  const { value, unset } = expandReferences(url, environment)
  if (unset.length > 0)
    return unset.map((name) => ({
      path,
      found: `\${${name}}, which is not set`,
      allowed: 'a variable of the environment of the bus',
    }))
  // Nothing of it is shown: it may hold a password.
  if (!SCHEME.test(value) || URL.canParse(value)) return []
  return [{ path, found: 'a URL that cannot be read', allowed: 'SCHEME://[USER:PASSWORD@]HOST[:PORT]' }]
}

function areOfOneKind(urls: readonly string[], path: Path): Finding[] {
  const kinds = new Set(urls.map((url) => /^wss?:/.test(url)))
  if (kinds.size < 2) return []
  return [{ path, found: 'WebSocket servers beside others', allowed: 'servers of one kind' }]
}

function pairFindings(files: Raw, path: Path): Finding[] {
  const { cert, key } = files
  if ((cert === undefined) === (key === undefined)) return []
  const [there, missing] = cert === undefined ? ['key', 'cert'] : ['cert', 'key']
  return [{ path: [...path, there], at: 'key', found: quote(there), allowed: `only beside ${quote(missing)}` }]
}

/** `POOL@NODE` means the pool of that node. */
function placeFindings({ id }: Raw, path: Path): Finding[] {
  if (typeof id !== 'string' || !id.includes('@')) return []
  return [
    {
      path: [...path, 'id'],
      found: quote(id),
      allowed: 'a name without "@" in a cluster: POOL@NODE is the pool of that node',
    },
  ]
}
