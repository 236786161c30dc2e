/** What a run came to, a row for each target. */
export function formatTable(tallies) {
  const rows = tallies.map(({ name, inputs, seconds, findings, kinds, note }) => [
    name,
    String(inputs),
    seconds.toFixed(1),
    String(findings),
    note === undefined ? shares(kinds) : `${shares(kinds)}; ${note}`,
  ])
  const inputs = tallies.reduce((sum, tally) => sum + tally.inputs, 0)
  const findings = tallies.reduce((sum, tally) => sum + tally.findings, 0)
  const seconds = tallies.reduce((sum, tally) => sum + tally.seconds, 0)
  const all = [['target', 'inputs', 'seconds', 'findings', 'met'], ...rows]
  all.push(['all', String(inputs), seconds.toFixed(1), String(findings), ''])
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column].length)))
  return all
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function shares(kinds) {
  const sorted = Object.entries(kinds).sort(([, a], [, b]) => b - a)
  const total = sorted.reduce((sum, [, count]) => sum + count, 0)
  return sorted.map(([kind, count]) => `${kind} ${percent(count / total)}`).join(', ')
}

function percent(share) {
  return share < 0.01 ? '<1%' : `${Math.round(share * 100)}%`
}
