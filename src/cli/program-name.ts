/** How whoever reads our advice types this program: as npx does where npx has run it. What is advised is to be pasted. */
export function programName(environment: NodeJS.ProcessEnv = process.env): string {
  const isRunByNpx =
    environment['npm_lifecycle_event'] === 'npx' && /^["']?stdio-bus\b/.test(environment['npm_lifecycle_script'] ?? '')
  return isRunByNpx ? 'npx stdio-bus' : 'stdio-bus'
}
