/** The policy of the page wants it said that the address of a script is ours; only the build's own are given here (contract 15.16). */
interface Policy {
  createScriptURL(url: string): string
}

const { trustedTypes } = globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): Policy } }
const policy = trustedTypes?.createPolicy('stdio-bus', { createScriptURL: (url: string) => url })

export function trustedAddress(path: string): string {
  return policy?.createScriptURL(path) ?? path
}
