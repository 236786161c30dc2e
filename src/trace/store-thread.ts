/**
 * The entry of the thread of a store that holds traces alone.
 */
import { Engine } from './engine.ts'
import { serveThread } from './thread-service.ts'

serveThread(new Engine())
