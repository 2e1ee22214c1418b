import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    reporters: ['default', './test/totals-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          environment: 'node',
          // No test waits for time to pass: this only ends one that hangs, on however slow a machine.
          testTimeout: 60_000,
          include: [
            'test/{core,policy,engine,telemetry,gateway,admin,sim,live,chaos,scripts}/**/*.test.ts',
            'test/*.test.ts',
          ],
        },
      },
      './test/worker/vitest.config.ts',
    ],
  },
});
