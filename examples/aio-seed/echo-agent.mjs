/** The smallest stdio agent: what it is given is its answer. */
import { startWorker } from 'stdio-bus/worker'

startWorker({}, { fallback: ({ inputs }) => ({ outputs: inputs }) })
