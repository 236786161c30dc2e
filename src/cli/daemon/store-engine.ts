/** The store of a bus, with everybody who has tables in it. */
import { JournalTables } from '../../journal/tables.ts'
import { Engine } from '../../trace/engine.ts'

/** The name under which the journal is asked. */
export const JOURNAL = 'journal'

export function storeEngine(): Engine {
  return new Engine({ [JOURNAL]: new JournalTables() })
}
