import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clean } from './clean.ts'
import { splitCommandLine } from './command-line.ts'
import { answerPermission } from './permission.ts'
import { Screen } from './screen.ts'
import { type ChatOptions, chooseTarget } from './target.ts'

describe('a command line', () => {
  it.each([
    ['opencode acp', ['opencode', 'acp']],
    ['  a  b ', ['a', 'b']],
    [`node "my agent.js" 'x y' z\\ w`, ['node', 'my agent.js', 'x y', 'z w']],
    [`a"b c"d`, ['ab cd']],
    [`"say \\"hi\\"" ''`, ['say "hi"', '']],
    ['$HOME `x` ; y', ['$HOME', '`x`', ';', 'y']],
    ['', []],
  ])('%j is the words %j', (text, words) => {
    expect(splitCommandLine(text)).toEqual(words)
  })

  it('gives back words that were quoted', () => {
    const quote = (word: string) => `'${word}'`
    fc.assert(
      fc.property(fc.array(fc.string().map((word) => word.replaceAll("'", ''))), (words) => {
        expect(splitCommandLine(words.map(quote).join(' '))).toEqual(words)
      }),
      { numRuns: 200 },
    )
  })

  it('with an open quote is a mistake', () => {
    expect(() => splitCommandLine('node "x')).toThrow('quote')
  })
})

describe('a target', () => {
  it.each<[ChatOptions, string[], unknown]>([
    [{ agent: 'a b' }, [], { kind: 'child', command: 'a', args: ['b'] }],
    [{}, ['a', 'b'], { kind: 'child', command: 'a', args: ['b'] }],
    [{ unix: '/s', pool: 'p' }, [], { kind: 'bus', address: { unix: '/s' }, pool: 'p' }],
    [{ tcp: 'h:1' }, [], { kind: 'bus', address: { tcp: { host: 'h', port: 1 } }, pool: undefined }],
    [{ tcp: '[::1]:7400' }, [], { kind: 'bus', address: { tcp: { host: '::1', port: 7400 } } }],
    [{ tls: 'h:1', ca: 'c' }, [], { kind: 'bus', address: { tls: { host: 'h', port: 1 }, files: { ca: 'c' } } }],
    [{ demo: true }, [], { kind: 'child', args: [expect.stringMatching(/openai.main\.js$/), '--demo'] }],
  ])('%j and %j', async (options, command, target) => {
    expect(await chooseTarget(options, command)).toMatchObject(target as object)
  })

  it('is the endpoint that is set, before anything that runs', async () => {
    const target = await chooseTarget({}, [], { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'm' })
    expect(target).toMatchObject({ kind: 'child', name: 'm', args: [expect.stringMatching(/openai.main\.js$/)] })
  })

  it.each<[ChatOptions, string[], string]>([
    [{ agent: 'a', unix: '/s' }, [], '--agent and --unix'],
    [{ demo: true }, ['a'], '--demo and the command after --'],
    [{ pool: 'p', demo: true }, [], 'no bus is asked'],
    [{ tcp: 'h:1', tls: 'h:1' }, [], '--tcp and --tls'],
    [{ tcp: 'h:1', ca: 'c' }, [], '--ca goes with --tls'],
    [{ agent: ' ' }, [], 'command line'],
    [{ tcp: 'nowhere' }, [], 'HOST:PORT'],
    [{ tcp: 'h:99999' }, [], 'HOST:PORT'],
  ])('%j and %j is a mistake', async (options, command, message) => {
    await expect(chooseTarget(options, command)).rejects.toThrow(message)
  })
})

describe('the screen', () => {
  const chunk = (sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk', text: string) =>
    ({ sessionUpdate, content: { type: 'text', text } }) as const

  function screen(color = false) {
    const out = { answer: '', aside: '' }
    const shown = new Screen({
      answer: { write: (text) => (out.answer += text) },
      aside: { write: (text) => (out.aside += text) },
      color,
    })
    return { out, shown }
  }

  it('keeps the answer apart from thoughts and tools', () => {
    const { out, shown } = screen()
    shown.show(chunk('agent_thought_chunk', 'hm'))
    shown.show({ sessionUpdate: 'tool_call', toolCallId: '1', title: 'look', status: 'pending' })
    shown.show({ sessionUpdate: 'tool_call_update', toolCallId: '1', status: 'in_progress' })
    shown.show({ sessionUpdate: 'tool_call_update', toolCallId: '1', status: 'failed' })
    shown.show(chunk('agent_message_chunk', 'Hel'))
    shown.show(chunk('agent_message_chunk', 'lo'))
    shown.endTurn()
    expect(out).toEqual({ answer: 'Hello\n', aside: 'hm\n… look\n✗ look\n' })
  })

  it('dims thoughts in colour', () => {
    const { out, shown } = screen(true)
    shown.show(chunk('agent_thought_chunk', 'hm'))
    expect(out.aside).toBe('\x1b[2mhm\x1b[22m')
  })

  it('shows no control character of an agent', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (pieces) => {
        const { out, shown } = screen()
        for (const piece of pieces) shown.show(chunk('agent_message_chunk', piece))
        expect(out.answer).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
      }),
      { numRuns: 200 },
    )
    expect(clean('a\x1b[2Jb\r\nc')).toBe('a\\u001b[2Jb\nc')
  })
})

describe('a permission', () => {
  const request = {
    sessionId: 's',
    toolCall: { toolCallId: '1', title: 'look', rawInput: { at: '\x1b[2J' } },
    options: [
      { optionId: 'y', name: 'Yes', kind: 'allow_once' as const },
      { optionId: 'n', name: 'No', kind: 'reject_once' as const },
    ],
  }

  it('is refused where nobody can be asked', async () => {
    expect(await answerPermission(request, undefined)).toEqual({ outcome: { outcome: 'selected', optionId: 'n' } })
    const none = { ...request, options: request.options.slice(0, 1) }
    expect(await answerPermission(none, undefined)).toEqual({ outcome: { outcome: 'cancelled' } })
  })

  it('is what the user chose, who sees no control characters', async () => {
    const titles: string[] = []
    const choose = (chosen: string | undefined) => async (title: string) => {
      titles.push(title)
      return chosen
    }
    expect(await answerPermission(request, choose('y'))).toEqual({ outcome: { outcome: 'selected', optionId: 'y' } })
    expect(await answerPermission(request, choose(undefined))).toEqual({ outcome: { outcome: 'cancelled' } })
    expect(titles[0]).toMatch(/^look \{"at":"\\\\?u001b/)
  })
})
