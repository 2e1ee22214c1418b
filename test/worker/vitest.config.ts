import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [
    cloudflareTest({
      wrangler: { configPath: '../../wrangler.toml' },
      remoteBindings: false,
    }),
  ],
  test: { name: 'worker', include: ['**/*.test.ts'] },
});
