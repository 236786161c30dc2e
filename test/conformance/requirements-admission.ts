/** Who comes in and how long it stays (clause 9), seen at the doors of the real program. */
export const ADMISSION = {
  '9.1-local': 'over stdio and Unix sockets one is local, an admin',
  '9.1-without-access': 'without access anybody may use all pools, and nobody is told apart',
  '9.1-anonymous-rights': 'with access anonymous has what the configuration says of it, and nothing else',
  '9.1-bound': 'anonymous exists on doors of this machine, by the bound address, elsewhere by --allow-unauthenticated',
  '9.1-beyond': 'a door beyond this machine where nobody can prove anything: exit 2',
  '9.2-never-anonymous': 'a bad credential ends the connection, where anonymous would be let in too',
  '9.3-open': 'the first line is bus::open with a token, answered with pool, principal and role',
  '9.3-first-line': 'any other first line is unauthenticated with its id, then the end; nobody hears of it',
  '9.3-in-order': 'what follows the credential waits for the verdict, in order',
  '9.3-16-kib': 'before it is admitted a connection may say 16 KiB',
  '9.3-5-s': 'before it is admitted a connection has 5 s from its accept',
  '9.3-strangers': 'those who have proved nothing are 256 of an address, 1,024 in all; the oldest gives way',
  '9.3-hostile': 'hostile first lines and credentials: nobody comes in, no worker hears of it, others are served',
  '9.3-later': 'a fresh token of the same principal extends the connection, of another it is not_allowed',
  '9.3-unix': 'on Unix sockets and stdio a token is optional, but counts',

  '9.5-revoked': 'a revoked credential: every outstanding request is unauthenticated, then the end; nobody else goes',
  '9.5-expired': 'an expired credential: the same within a second, saying so, unless a fresh one was shown',
  '9.5-certificates': 'a certificate whose principal is gone: the same',

  '9.2-before-certificate': 'a token counts before a certificate, a bad one too',
  '9.11-lines': 'a signed token lets in over lines',
  '9.11-forged': 'a forged, foreign, cut or expired signed token does not',
  '9.12-on-lines': 'keys are read when they are needed; without any it is keys_unavailable, and nobody else waits',
  '9.13-on-lines': 'map names the principal; a subject is told, counts and is recorded for itself',
  '9.16-principal': 'a certificate whose subject is named is a principal without a token',
  '9.16-no-match': 'a certificate that names nobody needs a token',

  '9.6-observer': 'an observer sends no message to a worker',
  '9.6-whoami': 'bus::whoami tells principal, role, via, pools, tools and expires',

  '9.10-narrowed': 'narrowed rights hold from the next message; what was accepted is answered',
  '9.10-sessions-end': 'sessions in a pool that was lost end',
  '9.10-reload': 'a reload that brings or takes access holds for those who are in; a mistaken one changes nothing',

  '9.18-pools':
    'a pool that no pattern matches is not_allowed, existing or not, in bus::open too; no worker hears of it',
  '9.18-named-pools': 'errors name allowed pools only; the only pool is among them',

  '9.19-called':
    'with tools, tools/call is judged by the value of its name, by pool where a pattern says so; deny wins',
  '9.19-refused':
    'a name that is missing, twice there, no string or not allowed is refused; the worker sees none of it',
  '9.20-equal-ids': 'answers to tools/list are found by their request: equal ids never mix',
  '9.20-host': 'an official MCP host lists and calls what it may, and no more',

  '9.21-rate': 'rate: a bucket of N over all doors and comings; beyond it rate_limited with when to come again',
  '9.21-free': 'rate: answers, cancels, ping and notifications/initialized are free',
  '9.21-notifications': 'rate: notifications count, and those beyond it are dropped',
  '9.21-batch': 'rate: each message of a batch counts',
  '9.21-pending': 'max_pending is over all connections: too_many_pending',
  '9.21-connections': 'max_connections is over all doors: too_many_clients',

  '9.15-recording': 'no credential is in a recording; one with payloads is refused where there is access',
  '9.23-events': 'audit lines tell who came, what was done, denied and refused, and who went',
  '9.23-stdout': 'the audit log may be stdout, but not where a client is served there',
  '9.25-at-the-door': 'past 10 bad credentials a minute the refusals of an address wait 1 s; good ones do not',
  '9.25-written': '10 log and audit lines of refusals a second, the rest are counted and told of',
  '9.26-nowhere': 'no credential and no payload is in a log, an error, the status, the audit or any file',

  '9.24-status': 'status tells of every principal its connections, pending and refused',
} as const
