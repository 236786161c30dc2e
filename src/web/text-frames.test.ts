/** Frames as they are written are frames as a reader of the protocol finds them. */

import { createRequire } from 'node:module'
import type { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { textFrames } from './text-frames.ts'

/** Of the library; its types leave it out. */
const { Receiver } = createRequire(import.meta.url)('ws') as {
  Receiver: new (options: { isServer: boolean; maxPayload: number }) => Writable
}

test.each([[[0]], [[1, 125, 126, 127]], [[65_535, 65_536, 3]]])('messages of %j bytes', async (sizes) => {
  const lines = sizes.map((size, index) => Buffer.alloc(size, 'abc'[index % 3]))
  const heard: string[] = []
  const reader = new Receiver({ isServer: false, maxPayload: 0 })
  reader.on('message', (data: Buffer, isBinary: boolean) => heard.push(`${isBinary} ${data}`))
  await new Promise<void>((resolve) => reader.write(textFrames(lines), () => resolve()))
  expect(heard).toEqual(lines.map((line) => `false ${line}`))
})
