import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    reporters: ['default', './test/totals-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          environment: 'node',
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
