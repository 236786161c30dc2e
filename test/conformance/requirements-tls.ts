/** What clause 9 says of TLS and of the token that a client brings. */
export const TLS = {
  '9.16-door': '--tls with --cert and --key opens a door that serves as the TCP door does',
  '9.16-flags': '--tls without --cert or --key, or these without --tls: exit 2',
  '9.16-version': 'nothing older than TLS 1.2',
  '9.16-handshake': 'a handshake that does not end is ended, and nobody else waits for it',
  '9.16-client-ca': 'client_ca: a certificate that it has signed is required, any other is refused',
  '9.16-optional': 'client_cert optional: a certificate is asked for, and a client without one comes in',
  '9.16-connect': 'connect --tls HOST:PORT with --ca, --cert and --key',
  '9.16-untrusted': 'connect refuses a bus whose certificate has expired, is of another host or of another authority',
  '9.16-token': 'the token of --token-file or STDIO_BUS_TOKEN is said first, and again to a bus that came back',
  '9.16-token-file': 'a token file that is open to others: exit 2',
  '9.16-refused': 'who is refused exits 1 at once with the reason',
  '9.16-ask': 'status and trace ask a bus at --tcp or --tls as a client of it',
  '9.17-start': 'at start a file that is unreadable, mismatched, or a key readable by others: exit 2',
  '9.17-exchange': 'certificate, key and authority are watched: new handshakes take the new, live connections stay',
  '9.17-bad-pair': 'a bad pair is only logged',
  '9.26-token-variable': 'nobody inherits STDIO_BUS_TOKEN',
} as const
