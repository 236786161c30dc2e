import { expect, test } from 'vitest'
import { isTelling } from './telling-line.ts'

const lastOf = (text: string): string | undefined => text.split('\n').findLast(isTelling)

test.each([
  [
    'Node',
    "Error: Cannot find module '/x/server.js'\n    at Module._load (node:x:1:1) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.20.2",
    "Error: Cannot find module '/x/server.js'",
  ],
  [
    'Python',
    'Traceback (most recent call last):\n  File "s.py", line 1, in <module>\n    f()\n    ^^^\nValueError: no key',
    'ValueError: no key',
  ],
  [
    'npx',
    "npm error code E404\nnpm error 404 'x@*' is not in this registry.\nnpm notice\nnpm error A complete log of this run can be found in: /x.log",
    "npm error 404 'x@*' is not in this registry.",
  ],
  [
    'Rust',
    "thread 'main' panicked at src/main.rs:2:5:\nno key\nnote: run with `RUST_BACKTRACE=1` environment variable",
    'no key',
  ],
  ['a program of its own', 'starting\nOPENAI_API_KEY is not set', 'OPENAI_API_KEY is not set'],
])('%s: the line that says why', (_, text, line) => {
  expect(lastOf(text)).toBe(line)
})
