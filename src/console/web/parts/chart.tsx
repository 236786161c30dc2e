/** A small picture of the last minutes, with its newest figure: figures do not jump, and the picture says the same in words. */
const WIDTH = 300
const HEIGHT = 64

export interface ChartProps {
  readonly title: string
  readonly figure: string
  readonly lines: readonly (readonly (number | null)[])[]
  readonly isBad?: boolean
  /** How a value is written; the greatest of the picture is. */
  readonly write: (value: number) => string
  /** What the left edge is. */
  readonly since: string
}

export function Chart({ title, figure, lines, isBad, write, since }: ChartProps) {
  const greatest = Math.max(0, ...lines.flat().map((value) => value ?? 0))
  const most = Math.max(1e-9, greatest)
  return (
    <figure class={`card chart ${isBad ? 'bad' : ''}`}>
      <figcaption>
        <span class="quiet">{title}</span> <span class="figure">{figure}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${figure}`}>
        {lines.map((line, index) => (
          <path key={index} class={`line-${index}`} d={pathOf(line, most)} />
        ))}
      </svg>
      <div class="axis quiet" aria-hidden="true">
        <span>{since}</span>
        <span>{greatest > 0 && `at most ${write(greatest)}`}</span>
        <span>now</span>
      </div>
    </figure>
  )
}

function pathOf(line: readonly (number | null)[], most: number): string {
  let path = ''
  let isDown = false
  for (const [index, value] of line.entries()) {
    if (value === null) {
      isDown = false
      continue
    }
    const x = (index / Math.max(1, line.length - 1)) * WIDTH
    const y = HEIGHT - 2 - (value / most) * (HEIGHT - 4)
    path += `${isDown ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`
    isDown = true
  }
  return path
}
