/** The name of this machine in the index: `{darwin,linux,windows}-{aarch64,x86_64}`, or undefined when it has none. */
export const PLATFORMS = [
  'darwin-aarch64',
  'darwin-x86_64',
  'linux-aarch64',
  'linux-x86_64',
  'windows-aarch64',
  'windows-x86_64',
] as const

export type Platform = (typeof PLATFORMS)[number]

const SYSTEMS: Readonly<Record<string, string>> = { darwin: 'darwin', linux: 'linux', win32: 'windows' }
const MACHINES: Readonly<Record<string, string>> = { arm64: 'aarch64', x64: 'x86_64' }

export function currentPlatform(
  system: string = process.platform,
  machine: string = process.arch,
): Platform | undefined {
  const name = `${SYSTEMS[system]}-${MACHINES[machine]}`
  return PLATFORMS.find((platform) => platform === name)
}
