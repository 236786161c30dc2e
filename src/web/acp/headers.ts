/** The names that ACP gives to a connection and to a session in the head of a request. */
export const CONNECTION_HEADER = 'acp-connection-id'
export const SESSION_HEADER = 'acp-session-id'
