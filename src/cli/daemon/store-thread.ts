/** The entry of the store's thread: traces, and the journal of kept sessions beside them in one file. */
import { serveThread } from '../../trace/thread-service.ts'
import { storeEngine } from './store-engine.ts'

serveThread(storeEngine())
