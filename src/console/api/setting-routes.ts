/** Access and configuration, as they are (contract 15.12, 15.14): no token, no digest, no secret. */
import { type ApiCall, type ApiRoute, maySee, notFound, pageOf, ROLES } from './api-call.ts'
import type { ConsolePort } from './port.ts'

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
    { method: 'GET', path: ['config'], roles: ROLES.lookers, serve: () => port.configuration() },
  ]
}

function describeAccess(port: ConsolePort, { query }: ApiCall): unknown {
  const principals = port.principals()
  return { ...pageOf(principals ?? [], query), has_access: principals !== undefined }
}
