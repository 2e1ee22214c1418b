import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { Response } from 'miniflare';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [
    cloudflareTest({
      wrangler: { configPath: '../../wrangler.toml' },
      remoteBindings: false,
      // Whatever `fetch` asks for, so that no test needs a network.
      miniflare: { outboundService: ({ url }) => new Response(`from ${url}`) },
    }),
  ],
  // Each question is a round trip through workerd, and two cores may be busy with the other project.
  test: { name: 'worker', include: ['**/*.test.ts'], testTimeout: 60_000 },
});
