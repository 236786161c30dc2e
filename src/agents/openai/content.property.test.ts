import type { ContentBlock } from '@agentclientprotocol/sdk'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { joinContents, plainText, toBlocks, toUserContent } from './content.ts'

const runs = { numRuns: 200 }
const text = fc.string()
const base64 = fc.base64String()
const mimeType = fc.constantFrom('image/png', 'image/jpeg', 'audio/wav')

const block: fc.Arbitrary<ContentBlock> = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text }),
  fc.record({ type: fc.constant('resource_link' as const), name: text, uri: fc.webUrl() }),
  fc.record({ type: fc.constant('resource' as const), resource: fc.record({ uri: fc.webUrl(), text }) }),
  fc.record({ type: fc.constant('resource' as const), resource: fc.record({ uri: fc.webUrl(), blob: base64 }) }),
  fc.record({ type: fc.constant('image' as const), mimeType, data: base64 }),
  fc.record({ type: fc.constant('audio' as const), mimeType, data: base64 }),
)

describe('content', () => {
  it('words each block as the specification says', () => {
    verifies('O6-words')
    const blocks: ContentBlock[] = [
      { type: 'text', text: 'Look:' },
      { type: 'resource_link', name: 'a.txt', uri: 'file:///a.txt' },
      { type: 'resource', resource: { uri: 'file:///b.txt', text: 'inside' } },
      { type: 'resource', resource: { uri: 'file:///c.bin', blob: 'AA==' } },
      { type: 'image', mimeType: 'image/png', data: 'AA==' },
      { type: 'audio', mimeType: 'audio/wav', data: 'AA==' },
    ]
    expect(toUserContent(blocks, false)).toBe(
      'Look:\n[Resource: a.txt] file:///a.txt\n[Resource: file:///b.txt]\ninside\n[Resource: file:///c.bin]\n' +
        '[Image: image/png]\n[Audio: audio/wav]',
    )
  })

  it('sends an image as a part, in its place, when vision is on', () => {
    verifies('O6-vision')
    const blocks: ContentBlock[] = [
      { type: 'text', text: 'What is' },
      { type: 'image', mimeType: 'image/png', data: 'AAAA' },
      { type: 'text', text: 'this?' },
    ]
    expect(toUserContent(blocks, true)).toEqual([
      { type: 'text', text: 'What is' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      { type: 'text', text: 'this?' },
    ])
    expect(toUserContent(blocks.slice(0, 1), true)).toBe('What is')
  })

  it('names a block of a kind that nobody knows yet', () => {
    expect(toUserContent([{ type: 'hologram' } as unknown as ContentBlock], false)).toBe('[hologram]')
  })

  it('is one string without vision, a piece for every block, in order', () => {
    fc.assert(
      fc.property(fc.array(block), (blocks) => {
        const content = toUserContent(blocks, false)
        expect(content).toBe(blocks.map((one) => toUserContent([one], false)).join('\n'))
      }),
      runs,
    )
  })

  it('has one part per block with vision and an image, and the images keep their data', () => {
    fc.assert(
      fc.property(fc.array(block), (blocks) => {
        const content = toUserContent(blocks, true)
        const images = blocks.filter((one) => one.type === 'image')
        expect(typeof content).toBe(images.length === 0 ? 'string' : 'object')
        if (images.length === 0) return
        expect(content).toHaveLength(blocks.length)
        expect(toBlocks(content).filter((one) => one.type === 'image')).toEqual(images)
      }),
      runs,
    )
  })

  it('joins two contents without losing text', () => {
    fc.assert(
      fc.property(fc.array(block), fc.array(block), fc.boolean(), (first, second, vision) => {
        const [one, two] = [toUserContent(first, vision), toUserContent(second, vision)]
        const joined = plainText(joinContents(one, two))
        expect(joined).toContain(plainText(one))
        expect(joined.endsWith(plainText(two))).toBe(true)
      }),
      runs,
    )
  })
})
