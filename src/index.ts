import { DurableObject } from 'cloudflare:workers';

export class LimiterOwner extends DurableObject {}

export default { fetch: () => new Response('not built yet') };
