/** Bugs of who is calling and what it may do (contract 9). See `plants.mjs`. */
import { plant } from './plant.mjs'

export const PLANTS_OF_RIGHTS = [
  plant(
    'an observer may send',
    'permission.ts',
    "row.rights.role === 'observer' || !row.mayUse(pool)",
    '!row.mayUse(pool)',
  ),
  plant(
    'any pool will do',
    'permission.ts',
    "row.rights.role === 'observer' || !row.mayUse(pool)",
    "row.rights.role === 'observer'",
  ),
  plant('what is denied is allowed', 'rights.ts', '!deny.some(isMeant) && ', ''),
  plant('a pattern with a pool means no tool', 'rights.ts', "pattern.includes('::') ?", 'pattern === "" ?'),
  plant(
    'a tool named twice is the last one',
    'permission.ts',
    'return line.isRepeated(FIELD.name) ? undefined :',
    'return',
  ),
  plant(
    'a later page of a list shows all tools',
    'permission.ts',
    "if (use === 'listed' && request !== undefined)",
    "if (use === 'listed' && request !== undefined && !line.bytes.utf8Slice(line.start, line.end).includes('cursor'))",
  ),
  plant('a rate is never spent', 'principals.ts', '    this.#left--\n    return 0', '    return 0'),
  plant(
    'narrowed rights hold for new connections only',
    'admission.ts',
    '    row.adopt(rights, this.#board.core.nowMs)\n    for (const pool',
    '    for (const pool',
  ),
  plant(
    'a fresh credential forgets its principal',
    'principals.ts',
    'if (client.owner !== row) this.leave(client)',
    'this.leave(client)',
  ),
  plant(
    'connections of a principal have no bound',
    'principals.ts',
    'row.clients.size >= maxConnections) return false',
    'row.clients.size > maxConnections) return false',
  ),
  plant(
    'unanswered requests count for each connection',
    'inbound.ts',
    'return maxPending !== undefined && owner!.pendingCount >= maxPending',
    'return false',
  ),
  plant(
    'a bad credential is as good as none',
    'admission.ts',
    "    if ('refusal' in verdict) this.#refuse(client, opening, verdict.refusal)\n",
    "    if ('refusal' in verdict) this.#adopt(client, { principal: 'local', name: 'local', via: 'local', rights: { role: 'admin', pools: ['*'] } })\n",
  ),
  plant('what follows a credential overtakes it', 'admission.ts', '    this.#board.flow.block(client, gate)\n', ''),
  plant(
    'who has ended its credential keeps its sessions',
    'admission.ts',
    '    this.#departures.clientGone(client)\n',
    '',
  ),
  plant(
    'who has ended its credential is owed its answers',
    'admission.ts',
    "    this.#departures.failAll(client, 'unauthenticated', detail)\n",
    '',
  ),
  plant(
    'strangers are as many as come',
    'admission.ts',
    'const isCrowd = neighbours.length > FIXED.maxStrangersPerAddress',
    'const isCrowd = false',
  ),
  plant(
    'strangers stay as long as they like',
    'admission.ts',
    "() => this.#turnAway(client, 'unauthenticated'))",
    '() => {})',
  ),
  plant(
    'another principal takes over a connection',
    'admission.ts',
    "if (isOther && opening?.isFirst === false) return this.#refuse(client, opening, { reason: 'not_allowed' })",
    '',
  ),
  plant(
    'sessions in a lost pool go on',
    'admission.ts',
    'if (!row.mayUse(pool)) this.#departures.leavePool(client, pool)',
    'void pool',
  ),
]
