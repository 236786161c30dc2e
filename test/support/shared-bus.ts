/** One bus for all tests of a `describe`, where the tests leave no trace in it that another could notice. */
import { afterAll, beforeAll } from 'vitest'
import { type Bus, type BusOptions, launch } from './bus.ts'
import { Workspace } from './workspace.ts'

export function sharedBus(options: BusOptions | ((workspace: Workspace) => BusOptions)): () => Bus {
  let bus: Bus | undefined
  let workspace: Workspace | undefined
  beforeAll(async () => {
    workspace = new Workspace()
    bus = await launch(typeof options === 'function' ? options(workspace) : options, workspace)
  })
  afterAll(() => workspace?.remove())
  return () => bus as Bus
}
