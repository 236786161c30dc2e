/** The key in `_meta` of an update that stands in place of an answer: the endpoint behind the agent has failed. */
export const FAILURE_MARK = 'stdio-bus/failure'
