/** Who is let in, as the configuration file spells it (contract 9.1, 9.11, 9.16, 9.23): each value alone. */
import { z } from 'zod'
import { rightsShape } from './rights-schema.ts'
import { httpUrl, path, word } from './schema-parts.ts'

const MAX_ROWS = 1_000
const SUBJECT = /^(?:CN=|DNS:|URI:|email:)[^\0]+$/

const as = () => word('the name of a principal').describe('The principal of the access file whose rights it gives.')

const claimRow = z.strictObject({
  claim: word('the path of a claim').describe(
    'The claim of the token, such as "scope" or "realm_access.roles"; dots go deeper.',
  ),
  equals: z
    .union([word('the value of the claim'), z.int(), z.boolean()])
    .describe('The value it must have; of a list, and of the words of scope, one of them.'),
  as: as(),
})

const oauth = z.strictObject({
  issuer: httpUrl().describe('The issuer of the tokens, exactly as their claim iss has it.'),
  audience: z
    .union([word('a text'), z.array(word('a text')).min(1)])
    .optional()
    .describe('What the claim aud must hold: a text, or a list of which one does. Left out: public_url and the path.'),
  jwks_url: httpUrl()
    .optional()
    .describe("Where the issuer's keys are. Left out: where the metadata of the issuer says."),
  map: z
    .array(claimRow)
    .min(1)
    .max(MAX_ROWS)
    .describe('Whose rights a token has: the first row that fits, so the strongest comes first. None fits: refused.'),
})

const certificateRow = z.strictObject({
  subject: z
    .string()
    .regex(SUBJECT, 'CN=, DNS:, URI: or email: and a pattern, such as "DNS:*.example.com"')
    .describe('A name in the certificate: CN=, DNS:, URI: or email: and a pattern, in which * is any text.'),
  as: as(),
})

export const access = z.strictObject({
  file: path()
    .optional()
    .describe('The file with the principals and their tokens, relative to this one. "stdio-bus token add" writes it.'),
  anonymous: z
    .union([z.strictObject(rightsShape), z.literal(false)])
    .default(false)
    .describe('What those who show no credential may do on doors of this machine; false: nothing.'),
  audit: z
    .union([
      z.strictObject({
        file: path().describe('The file, or the device, that the lines are added to.'),
        required: z
          .boolean()
          .default(false)
          .describe('true refuses requests while the file cannot be written, instead of counting lost lines.'),
      }),
      path(),
    ])
    .optional()
    .describe(
      'A file with a line for everything that anybody did or was refused, relative to this file. Left out: none.',
    ),
  oauth: oauth.optional().describe('Admits tokens that an OAuth 2.1 server has signed.'),
  certificates: z
    .array(certificateRow)
    .max(MAX_ROWS)
    .default([])
    .describe('Whose rights a client certificate gives, on doors with client_ca: the first row that fits.'),
})

export const tlsDoor = z.strictObject({
  address: word('HOST:PORT').describe(
    'HOST:PORT; the host is a name, an IPv4 address or an IPv6 address in brackets; port 0 picks one.',
  ),
  pool: word('the id of a pool').optional().describe('The pool that clients of this door use unless they name one.'),
  cert: path().describe('The certificate of the bus in PEM, its chain after it, relative to this file.'),
  key: path().describe('The private key of the certificate in PEM. Nobody else may be able to read it: chmod 600.'),
  client_ca: path()
    .optional()
    .describe(
      'The authorities in PEM that client certificates are checked with. Left out: clients are asked for none.',
    ),
  client_cert: z
    .enum(['required', 'optional'])
    .default('required')
    .describe('Beside client_ca: whether a client without a certificate is turned away or may show a token instead.'),
})
