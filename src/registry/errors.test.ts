import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { REASONS, RegistryError } from './errors.ts'

describe('errors', () => {
  it.each(REASONS)('%s says what is wrong, what to do, and is in the document', (reason) => {
    const fault = new RegistryError(reason, 'SUBJECT', 'DETAIL')
    expect(fault.message).toContain('SUBJECT')
    expect(fault.message).toContain('DETAIL')
    expect(fault.message).toContain(fault.wayOut)
    const document = readFileSync(new URL('../../docs/registry.md', import.meta.url), 'utf8')
    expect(document).toContain(`| \`${reason}\` | ${fault.exitCode} |`)
  })

  it('show text of others escaped', () => {
    expect(new RegistryError('network', 'a\u001b[2Jb', '\u202ecd\n').message).toContain(
      'a\\u001b[2Jb (\\u202ecd\\u000a)',
    )
  })
})
