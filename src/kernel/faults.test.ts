import { expect, test } from 'vitest'
import { errorLine } from '../wire/jsonrpc.ts'
import { FAULTS, faultLine, faultOf, type Reason } from './faults.ts'

const DETAILS = [
  undefined,
  {},
  { pool: undefined },
  { sessionId: 'a"b' },
  { pool: 'x', pools: ['y', 'z'] },
  { limit: 3 },
]

test('a line of a fault is the line of its error', () => {
  for (const reason of Object.keys(FAULTS) as Reason[])
    for (const detail of DETAILS)
      expect(`${faultLine('7', reason, detail)}`).toBe(`${errorLine('7', faultOf(reason, detail))}`)
})
