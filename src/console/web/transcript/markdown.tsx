/**
 * Markdown of peers as elements of a fixed list (contract 15.17): paragraphs, headings, lists, quotes, code, emphasis, links.
 *
 * Everything becomes text nodes; HTML is shown as it is. Links lead to http and https only and show where. Images are not loaded: they
 * would tell somebody that this was read.
 */
import type { ComponentChildren } from 'preact'
import { Preformatted } from '../parts/preformatted.tsx'
import { shown } from '../text.ts'

const MAX_CHARS = 256 * 1024
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/
const HEADING = /^ {0,3}#{1,6}\s+(.+?)\s*#*$/
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/
const ITEM = /^(\s*)(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/
const QUOTE = /^ {0,3}>\s?(.*)$/
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/

export function Markdown({ text }: { readonly text: string }) {
  const whole = shown(text.slice(0, MAX_CHARS))
  return (
    <div class="md">
      {blocksOf(whole.split('\n'))}
      {text.length > MAX_CHARS && <p class="quiet">… cut here: {text.length - MAX_CHARS} characters more</p>}
    </div>
  )
}

function blocksOf(lines: readonly string[], depth = 0): ComponentChildren[] {
  const blocks: ComponentChildren[] = []
  let at = 0
  const take = (fits: (line: string) => boolean): string[] => {
    const from = at
    while (at < lines.length && fits(lines[at]!)) at++
    return lines.slice(from, at)
  }
  while (at < lines.length) {
    const line = lines[at]!
    const key = at
    const fence = FENCE.exec(line)
    if (line.trim() === '') at++
    else if (fence !== null) {
      at++
      const code = take((each) => !each.trim().startsWith(fence[1]!))
      at++
      blocks.push(
        <Preformatted key={key}>
          <code>{code.join('\n')}</code>
        </Preformatted>,
      )
    } else if (HEADING.test(line)) {
      at++
      blocks.push(
        <p key={key} class="md-heading">
          {inline(HEADING.exec(line)![1]!)}
        </p>,
      )
    } else if (RULE.test(line)) {
      at++
      blocks.push(<hr key={key} />)
    } else if (QUOTE.test(line) && depth < 4) {
      const inner = take((each) => QUOTE.test(each)).map((each) => QUOTE.exec(each)![1]!)
      blocks.push(<blockquote key={key}>{blocksOf(inner, depth + 1)}</blockquote>)
    } else if (ITEM.test(line)) {
      blocks.push(
        listOf(
          take((each) => ITEM.test(each) || /^\s{2,}\S/.test(each)),
          key,
        ),
      )
    } else if (line.includes('|') && TABLE_RULE.test(lines[at + 1] ?? '') && lines[at + 1]!.includes('-')) {
      const rows = take((each) => each.includes('|'))
      blocks.push(tableOf(rows, key))
    } else {
      const words = take((each) => isPlain(each))
      if (words.length === 0) words.push(lines[at++]!)
      blocks.push(<p key={key}>{inline(words.join('\n'))}</p>)
    }
  }
  return blocks
}

function isPlain(line: string): boolean {
  return line.trim() !== '' && ![FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line))
}

/** One level; what is below is moved in. */
function listOf(lines: readonly string[], key: number): ComponentChildren {
  const isOrdered = ITEM.exec(lines[0]!)?.[3] !== undefined
  const items: { readonly depth: number; text: string }[] = []
  for (const line of lines) {
    const found = ITEM.exec(line)
    if (found === null) items.at(-1)!.text += `\n${line.trim()}`
    else items.push({ depth: Math.min(4, Math.floor(found[1]!.length / 2)), text: found[4]! })
  }
  const rows = items.map(({ depth, text }, index) => (
    <li key={index} class={`depth-${depth}`}>
      {inline(text.replace(/^\[ \]\s/, '☐ ').replace(/^\[[xX]\]\s/, '☑ '))}
    </li>
  ))
  return isOrdered ? <ol key={key}>{rows}</ol> : <ul key={key}>{rows}</ul>
}

function tableOf([head = '', , ...rows]: readonly string[], key: number): ComponentChildren {
  const cells = (row: string): string[] => row.replace(/^\s*\||\|\s*$/g, '').split('|')
  return (
    <div key={key} class="md-table">
      <table>
        <thead>
          <tr>
            {cells(head).map((cell, index) => (
              <th key={index} scope="col">
                {inline(cell.trim())}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {cells(row).map((cell, index) => (
                <td key={index}>{inline(cell.trim())}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const INLINE =
  /(`+)([^`]|[^`][\s\S]{0,2000}?[^`])\1(?!`)|!\[([^\]\n]{0,500})\]\(([^()\s]{1,2000})[^()\n]{0,200}\)|\[([^\]\n]{1,500})\]\(([^()\s]{1,2000})[^()\n]{0,200}\)|(https?:\/\/[^\s<>"'`()]{1,2000})|\*\*([^*\n]{1,2000})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,2000})\*(?!\w)|~~([^~\n]{1,2000})~~/

function inline(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = []
  let rest = text
  for (let key = 0; rest !== ''; key++) {
    const found = INLINE.exec(rest)
    if (found === null) {
      parts.push(rest)
      break
    }
    if (found.index > 0) parts.push(rest.slice(0, found.index))
    parts.push(spanOf(found, key))
    rest = rest.slice(found.index + found[0].length)
  }
  return parts
}

function spanOf(found: RegExpExecArray, key: number): ComponentChildren {
  const [all, , code, alt, image, label, target, bare, strong, emphasis, struck] = found
  if (code !== undefined) return <code key={key}>{code}</code>
  if (image !== undefined)
    return (
      <span key={key} class="quiet">
        [image {alt} {image}]
      </span>
    )
  if (target !== undefined) return <Link key={key} label={label!} target={target} />
  if (bare !== undefined) return <Link key={key} label={bare} target={bare} />
  if (strong !== undefined) return <strong key={key}>{inline(strong)}</strong>
  if (emphasis !== undefined) return <em key={key}>{inline(emphasis)}</em>
  if (struck !== undefined) return <s key={key}>{struck}</s>
  return all
}

/** Where it leads is seen before it is followed. */
export function Link({ label, target }: { readonly label: string; readonly target: string }) {
  const url = /^https?:\/\//i.test(target) && URL.canParse(target) ? new URL(target) : undefined
  if (url === undefined)
    return (
      <span>
        {label} ({target})
      </span>
    )
  return (
    <>
      <a href={url.href} target="_blank" rel="noopener noreferrer">
        {label}
      </a>
      {label !== target && <span class="quiet"> ({url.href})</span>}
    </>
  )
}
