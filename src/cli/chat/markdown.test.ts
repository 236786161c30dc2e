import fc from 'fast-check'
import picocolors from 'picocolors'
import { describe, expect, it } from 'vitest'
import { displayWidth } from '../../wire/columns.ts'
import { Markdown } from './markdown.ts'

function render(text: string, { columns = 80, color = false, sizes = [text.length || 1] } = {}): string {
  let shown = ''
  const markdown = new Markdown(
    { write: (more) => (shown += more) },
    { columns: () => columns, paint: picocolors.createColors(color) },
  )
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = sizes[turn % sizes.length]!
    markdown.push(text.slice(at, at + size))
    at += size
  }
  markdown.end()
  return shown
}

/** With colours written as names. */
function painted(text: string): string {
  const names: Record<string, string> = { 1: 'b', 2: 'dim', 3: 'i', 4: 'u', 9: 's', 36: 'c' }
  return render(text, { color: true })
    .replace(/\x1b\[(?:22|23|24|29|39)m/g, '>')
    .replace(/\x1b\[(\d+)m/g, (_, code) => `<${names[code]} `)
}

describe('Markdown', () => {
  it.each([
    ['**strong** and *soft*', '<b strong> and <i soft>\n'],
    ['a `code` b', 'a <c code> b\n'],
    ['`` a`b ``', '<c a`b>\n'],
    ['# Title', '<b <u Title>>\n'],
    ['## Title', '<b Title>\n'],
    ['[here](https://x.test/a_b)', '<u here> <dim (https://x.test/a_b)>\n'],
    ['[https://x.test](https://x.test)', '<u https://x.test>\n'],
    ['![alt](pic.png)', '<u alt> <dim (pic.png)>\n'],
    ['~~gone~~', '<s gone>\n'],
    ['- item', '<c • >item\n'],
    ['  - nested', '<c   • >nested\n'],
    ['12. item', '<c 12. >item\n'],
    ['- [x] done', '<c ☑ >done\n'],
    ['> quoted', '<dim │ ><dim quoted>\n'],
    ['---', `<dim ${'─'.repeat(40)}>\n`],
    ['```js\n**x**\n```', '<dim   js>\n<c   **x**>\n'],
    ['**a `b** c` d**', '<b a> <b <c b**>> <b <c c>> <b d>\n'],
    ['***both***', '<b both>\n'],
    ['*a **b** c*', '<i a> <i <b b>> <i c>\n'],
  ])('%j is shown as %j', (text, shown) => {
    expect(painted(text)).toBe(shown)
  })

  it.each([
    ['snake_case_name'],
    ['2 * 3 * 4'],
    ['**never closed'],
    ['`never closed'],
    ['[a] (b)'],
    ['a_b*c'],
    ['a ****'],
    ['--flag'],
    ['#hashtag'],
    ['1.5 times'],
    ['a | b'],
    ['| no table'],
    ['<b>html</b>'],
  ])('%j is only text', (text) => {
    expect(painted(text)).toBe(`${text}\n`)
  })

  it('keeps the marks where there are no colours', () => {
    expect(render('# Title\n**a** `b` [c](d)')).toBe('# Title\n**a** `b` [c](d)\n')
  })

  it('has no more than one empty line, and none to begin with', () => {
    expect(render('\n\na\n\n\n\nb')).toBe('a\n\nb\n')
  })

  it('breaks lines at words, under the margin of their block', () => {
    expect(render('- one two three four five', { columns: 21 })).toBe('• one two three four\n  five\n')
    expect(render('> one two three four five', { columns: 21 })).toBe('│ one two three four\n│ five\n')
    expect(render('日本語の文章は空白なしで折り返される', { columns: 21 })).toBe(
      '日本語の文章は空白な\nしで折り返される\n',
    )
  })

  it('draws a table no wider than the terminal', () => {
    const table = '| a | long column | n |\n|---|---|--:|\n| `x|y` | some words that need room | 12 |'
    expect(render(table, { columns: 32 })).toBe(
      [
        'a     │ long column        │  n',
        '──────┼────────────────────┼───',
        '`x|y` │ some words that    │ 12',
        '      │ need room          │',
        '',
      ].join('\n'),
    )
  })

  it('shows the same however it arrives, and no line that is too wide', () => {
    const unit = fc.constantFrom(
      ...[
        'a',
        'b ',
        ' ',
        '\n',
        '*',
        '**',
        '_',
        '`',
        '```',
        '#',
        '# ',
        '- ',
        '1. ',
        '> ',
        '>',
        '            ',
        '|',
        '---',
        '~~',
      ],
      ...['[', '](', ')', '!', '\\', '日', '🚀', '\t', 'word ', '[x] ', '\n\n'],
    )
    const text = fc.array(unit, { maxLength: 60 }).map((units) => units.join(''))
    fc.assert(
      fc.property(
        text,
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }),
        fc.boolean(),
        (given, sizes, color) => {
          const whole = render(given, { columns: 30, color })
          expect(render(given, { columns: 30, color, sizes })).toBe(whole)
        },
      ),
      { numRuns: 3_000 },
    )
    const prose = fc.array(fc.constantFrom('a', 'bb ', ' ', '日', '🚀', '**', '`', '- ', '\n'), { maxLength: 200 })
    fc.assert(
      fc.property(prose, (units) => {
        for (const line of render(units.join(''), { columns: 30 }).split('\n'))
          expect(displayWidth(line)).toBeLessThanOrEqual(30)
      }),
      { numRuns: 500 },
    )
  })

  it('loses no word', () => {
    const word = fc.stringMatching(/^[a-z]{1,12}$/)
    fc.assert(
      fc.property(fc.array(word), fc.integer({ min: 5, max: 60 }), (words, columns) => {
        expect(render(words.join(' '), { columns }).replace(/\s+/g, '')).toBe(words.join(''))
      }),
    )
  })

  it('comes to an end with lines that do not', () => {
    for (const opening of ['**', '`', '[', '| ', '```\n', '> ', '*_', '[a](']) {
      expect(render(opening + 'x '.repeat(50_000), { sizes: [200] })).toContain('x x x')
      expect(() => render(opening.repeat(5_000), { sizes: [7] })).not.toThrow()
    }
  })
})
