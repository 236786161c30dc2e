/** Logging in and out, and who one is (contract 15.3, 15.4). */
import type { Admitted } from '../../web/port.ts'
import type { WebRequest } from '../../web/web-request.ts'
import { cookieName } from './api.ts'
import { type ApiCall, ApiError, type ApiRoute, ROLES } from './api-call.ts'
import type { Login, Logins } from './logins.ts'
import type { ConsolePort } from './port.ts'

const BAD_CODE = new ApiError(
  401,
  'bad_code',
  'The code is wrong, spent or too old: stdio-bus console prints a new one.',
)

export function loginRoutes(port: ConsolePort, logins: Logins): ApiRoute[] {
  const logIn = async ({ web, body, isSecure }: ApiCall): Promise<unknown> => {
    const { secret, login } = logins.open(await admit(port, logins, web, body))
    web.setHeaders({ 'set-cookie': cookie(web, secret, isSecure) })
    port.audit(login.admitted.identity, 'console login', 'ok')
    return describe(port, logins, login.admitted, login)
  }
  const logOut = ({ web, login, isSecure }: ApiCall): unknown => {
    if (login !== undefined) logins.end(login)
    web.setHeaders({ 'set-cookie': `${cookie(web, '', isSecure)}; Max-Age=0` })
    return {}
  }
  return [
    { method: 'POST', path: ['login'], roles: ROLES.all, serve: logIn },
    { method: 'POST', path: ['logout'], roles: ROLES.all, serve: logOut },
    {
      method: 'GET',
      path: ['me'],
      roles: ROLES.all,
      serve: ({ admitted, login }) => describe(port, logins, admitted, login),
    },
  ]
}

async function admit(port: ConsolePort, logins: Logins, web: WebRequest, body: ApiCall['body']): Promise<Admitted> {
  const { code, token } = body
  // The field for the code takes a token too.
  const shown = typeof token === 'string' ? token : typeof code === 'string' ? code : ''
  const byCode = logins.spend(shown)
  if (byCode !== undefined) return byCode
  const isToken = shown.startsWith('sbus_') || shown.split('.').length === 3
  const judged = isToken ? await port.judge(shown, web) : undefined
  if (judged !== undefined && 'identity' in judged) return judged
  // What was judged has been slowed by that.
  if (judged === undefined) await port.refuse(web)
  throw BAD_CODE
}

function describe(port: ConsolePort, logins: Logins, { identity }: Admitted, login: Login | undefined): unknown {
  const { name, subject, rights } = identity
  return {
    name: subject === undefined ? name : `${name}/${subject}`,
    role: rights.role,
    pools: rights.pools,
    csrf: login?.csrf ?? null,
    version: port.version,
    expires_at: login === undefined ? (identity.expires ?? null) : new Date(logins.endsAtMs(login)).toISOString(),
  }
}

function cookie(web: WebRequest, secret: string, isSecure: boolean): string {
  const secure = isSecure ? '; Secure' : ''
  return `${cookieName(web)}=${secret}; Path=/; HttpOnly; SameSite=Strict${secure}`
}
