/** A stream whose reader has gone before it began (contract 10.16). */
import { EventEmitter } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { EventStream } from './event-stream.ts'
import { WebRequest } from './web-request.ts'

test('a reader that went while its request was judged is told of as any other', async () => {
  const request = Object.assign(new EventEmitter(), { url: '/mcp', headers: {}, method: 'GET', complete: true })
  const gone = { destroyed: true, writeHead: () => {}, flushHeaders: () => {}, write: () => {} }
  let streams = 0
  const tally = { refused: () => {}, streamBegan: () => streams++, streamEnded: () => streams-- }
  const response = Object.assign(new EventEmitter(), gone)
  const web = new WebRequest(request as never, response as never, { peer: '' } as never, tally)
  const heard: string[] = []
  const stream = new EventStream(
    web,
    () => heard.push('gone'),
    () => {},
  )
  await turn()
  expect([heard, stream.isOver, streams]).toEqual([['gone'], true, 0])
})
