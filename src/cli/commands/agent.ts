/** `stdio-bus agent NAME`: the agents that ship with the bus, on stdin and stdout, for any client or pool. */
import { Argument, type Command } from 'commander'

const AGENTS = {
  echo: async () => (await import('../../agents/echo/main.ts')).runEchoAgent,
  openai: async () => (await import('../../agents/openai/main.ts')).runOpenAiAgent,
  registry: async () => (await import('../../agents/registry/main.ts')).runRegistryAgent,
} as const

export function addAgent(program: Command): void {
  program
    .command('agent')
    .description('run an agent that ships with the bus on stdin and stdout')
    .addArgument(new Argument('<name>', 'which one').choices(Object.keys(AGENTS)))
    .argument('[args...]', 'its own arguments')
    .allowUnknownOption()
    .passThroughOptions()
    .action(async (name: keyof typeof AGENTS, args: string[]) => {
      const run = await AGENTS[name]()
      process.exitCode = await run(args, process.env)
    })
}
