import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The longest files run beside all others instead of after them. */
const LONGEST = /test\/(?:fuzz\/every-target|browser\/tools|docs\/blocks)\.test\.ts$/

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [
      ...sorted.filter(({ moduleId }) => LONGEST.test(moduleId)),
      ...sorted.filter(({ moduleId }) => !LONGEST.test(moduleId)),
    ]
  }
}

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: 'forks',
    // Most of a test is waiting for processes.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
  },
})
