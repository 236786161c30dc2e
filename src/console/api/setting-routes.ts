/** Access and configuration, as they are (contract 15.12, 15.14): no token, no digest, no secret. */
import { type ApiCall, type ApiRoute, maySee, notFound, pageOf, ROLES } from './api-call.ts'
import type { ConfigurationView, ConsolePort } from './port.ts'

export function settingRoutes(port: ConsolePort): ApiRoute[] {
  const revoke = async ({ admitted, parts: [name = ''] }: ApiCall): Promise<unknown> => {
    const isThere = port.principals()?.some((principal) => principal.name === name)
    if (isThere !== true || !(await port.revoke(name))) throw notFound('principal of this name in the access file')
    port.audit(admitted.identity, `revoke ${name}`, 'ok')
    return {}
  }
  const pools = (call: ApiCall): unknown => ({
    items: port.poolViews().filter(({ id }) => maySee(call, id)),
    max_message_bytes: port.maxMessageBytes(),
  })
  return [
    { method: 'GET', path: ['pools'], roles: ROLES.all, serve: pools },
    { method: 'GET', path: ['access'], roles: ROLES.lookers, serve: (call) => describeAccess(port, call) },
    { method: 'DELETE', path: ['access', '*'], roles: ROLES.admin, serve: revoke },
    {
      method: 'GET',
      path: ['config'],
      roles: ROLES.lookers,
      serve: async (call) => ofPools(await port.configuration(), call),
    },
  ]
}

const OF_POOL = /\bpools\[(\d+)\]/

/** Without the pools that the caller may not see; what is found or changed elsewhere in the file is for all who look. */
function ofPools(view: ConfigurationView, call: ApiCall): ConfigurationView {
  if (call.admitted.identity.rights.role === 'admin') return view
  const ids = new Map(view.settings.map(({ path, value }) => [path, value]))
  const mayKnow = (text: string): boolean => {
    const at = OF_POOL.exec(text)?.[1]
    return at === undefined || maySee(call, String(ids.get(`pools[${at}].id`) ?? ''))
  }
  const { changed, problem } = view.pending
  return {
    file: view.file,
    settings: view.settings.filter(({ path }) => mayKnow(path)),
    findings: view.findings.filter(({ place }) => mayKnow(place)),
    pending: { changed: changed.filter((part) => maySeeChange(call, part)), problem },
  }
}

const CHANGED_POOL = 'pools: '

function maySeeChange(call: ApiCall, part: string): boolean {
  return !part.startsWith(CHANGED_POOL) || maySee(call, part.slice(CHANGED_POOL.length))
}

function describeAccess(port: ConsolePort, { query }: ApiCall): unknown {
  const principals = port.principals()
  return { ...pageOf(principals ?? [], query), has_access: principals !== undefined }
}
