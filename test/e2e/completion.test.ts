/** `stdio-bus completion` in the shells themselves, and the manual page that is made of the same definition. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { runBus, testWorkspace } from '../support/bus.ts'

const MANUAL = fileURLToPath(new URL('../../dist/man/stdio-bus.1', import.meta.url))
const has = (program: string): boolean => spawnSync('which', [program]).status === 0

/** What a shell offers at the end of a line. */
const SHELLS = {
  bash: (script: string, words: readonly string[]) =>
    `source ${script}; COMP_WORDS=(${words.map(quote).join(' ')}); COMP_CWORD=${words.length - 1}; _stdio_bus; printf '%s\\n' "\${COMPREPLY[@]}"`,
  fish: (script: string, words: readonly string[]) => `source ${script}; complete -C ${quote(words.join(' '))}`,
} as const

function quote(text: string): string {
  return `'${text}'`
}

async function scriptOf(shell: string): Promise<{ file: string; text: string; folder: string }> {
  const workspace = testWorkspace()
  const { stdout, code } = await runBus(['completion', shell], { workspace })
  expect(code).toBe(0)
  workspace.write('notes and more.txt', '')
  return { file: workspace.write(`completion.${shell}`, stdout), text: stdout, folder: workspace.folder }
}

describe.each(Object.keys(SHELLS) as (keyof typeof SHELLS)[])('%s', (shell) => {
  test.skipIf(!has(shell))('offers commands, options, choices and files where they may stand', async () => {
    const { file, folder } = await scriptOf(shell)
    const offered = (...words: string[]): string[] => {
      const { stdout, stderr } = spawnSync(shell, ['-c', SHELLS[shell](file, ['stdio-bus', ...words])], {
        cwd: folder,
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], HOME: folder },
      })
      expect(stderr).toBe('')
      return stdout.split('\n').map((line) => line.split('\t')[0]!.trimEnd())
    }
    expect(offered('')).toEqual(expect.arrayContaining(['serve', 'connect', 'trace', 'completion']))
    expect(offered('conn')).toContain('connect')
    expect(offered('--con')).toEqual(expect.arrayContaining(['--config', '--control']))
    expect(offered('trace', '')).toEqual(expect.arrayContaining(['ls', 'show', 'export']))
    expect(offered('trace', 'ls', '--a')).toContain('--agent')
    expect(offered('trace', 'ls', '--a')).not.toContain('--autostart')
    expect(offered('serve', '--log-level', '')).toEqual(expect.arrayContaining(['debug', 'silent']))
    expect(offered('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']))
    expect(offered('serve', '--config', 'notes').join()).toContain('notes')
    expect(offered('--tcp', '')).not.toContain('serve')
  })
})

test.skipIf(!has('zsh'))('zsh takes the script and knows a function for each command', async () => {
  const { file } = await scriptOf('zsh')
  const check = `autoload -Uz compinit; compinit -u -D; source ${file}; print $_comps[stdio-bus]; whence -w _stdio_bus_trace_ls`
  const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', check], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(stdout).toBe('_stdio_bus\n_stdio_bus_trace_ls: function\n')
})

test('every option that help shows is in every script and in the manual', async () => {
  const workspace = testWorkspace()
  const scripts = await Promise.all(['bash', 'zsh', 'fish'].map(async (shell) => (await scriptOf(shell)).text))
  const manual = readFileSync(MANUAL, 'utf8').replaceAll('\\-', '-')
  for (const command of ['serve', 'connect', 'trace ls', 'registry install']) {
    const { stdout } = await runBus([...command.split(' '), '--help'], { workspace })
    const options = [...stdout.matchAll(/^ {2}(?:-\w, )?--([\w-]+)/gm)].map(([, name]) => name!)
    expect(options.length).toBeGreaterThan(2)
    for (const option of options) {
      for (const text of scripts) expect(text, command).toMatch(new RegExp(`(--|-l )${option}\\b`))
      if (option !== 'help') expect(manual, command).toContain(`--${option}`)
    }
  }
})

test('an unknown shell is a mistake that names those there are', async () => {
  const { code, stderr } = await runBus(['completion', 'tcsh'], { workspace: testWorkspace() })
  expect([code, stderr]).toEqual([2, expect.stringContaining('bash, zsh, fish')])
})

describe('the manual page', () => {
  test('has every command, and nothing that a formatter would stumble over', () => {
    const page = readFileSync(MANUAL, 'utf8')
    for (const command of ['serve', 'connect', 'trace ls', 'completion']) {
      expect(page).toContain(`.SS "stdio\\-bus ${command}`)
    }
    expect(page.split('\n').filter((line) => /^[.']/.test(line) && !/^\.(TH|SH|SS|TP|B|BR)\b/.test(line))).toEqual([])
  })

  test.skipIf(!has('mandoc'))('mandoc has nothing to warn of', () => {
    const { stdout } = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', MANUAL], { encoding: 'utf8' })
    expect(stdout.split('\n').filter((line) => line !== '' && !line.includes('missing date'))).toEqual([])
  })

  test.skipIf(!existsSync('/usr/bin/man'))('man shows it', () => {
    const { stdout, stderr } = spawnSync('man', ['--warnings', '-l', MANUAL], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], MANPAGER: 'cat', MANWIDTH: '80', LANG: 'C.UTF-8' },
    })
    expect(stderr).toBe('')
    expect(stdout).toContain('--allow-unauthenticated')
  })
})
