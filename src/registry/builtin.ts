/**
 * The index of last resort: what is known when no index has ever been reached.
 *
 * `openai-agent` is part of this package and runs from it, so it needs neither network nor installation. The others are
 * pinned like any entry; a reachable index replaces them.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AgentEntry } from './entry.ts'

interface OwnPackage {
  readonly root: string
  readonly name: string
  readonly version: string
  readonly bin: Readonly<Record<string, string>>
}

let known: OwnPackage | undefined

/** The package that this file belongs to, built or not. */
export function ownPackage(): OwnPackage {
  known ??= readOwnPackage()
  return known
}

function readOwnPackage(): OwnPackage {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const { name, version, bin } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
  return { root, name, version, bin }
}

export function builtinAgents(): readonly AgentEntry[] {
  const own = ownPackage()
  return [
    {
      id: 'openai-agent',
      name: 'OpenAI agent',
      version: own.version,
      description:
        'Any OpenAI Chat Completions endpoint (OpenAI, Ollama, vLLM, LiteLLM, Bedrock, Azure) as an ACP agent',
      distribution: { npx: { package: `${own.name}@${own.version}`, cmd: 'openai-agent' } },
    },
    {
      id: 'gemini',
      name: 'Gemini CLI',
      version: '0.61.0',
      description: "Google's agent for the terminal",
      distribution: { npx: { package: '@google/gemini-cli@0.61.0', args: ['--acp'] } },
    },
    {
      id: 'claude-acp',
      name: 'Claude Agent',
      version: '0.99.1',
      description: 'The Claude agent behind ACP',
      distribution: { npx: { package: '@agentclientprotocol/claude-agent-acp@0.99.1' } },
    },
    {
      id: 'codex-acp',
      name: 'Codex',
      version: '2.6.0',
      description: 'The Codex agent behind ACP',
      distribution: { npx: { package: '@agentclientprotocol/codex-acp@2.6.0' } },
    },
  ]
}
