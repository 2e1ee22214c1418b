/**
 * Stands in a gateway's process for the owners of another: an object of the same id as each owner, which hands every call on.
 *
 * workerd binds only namespaces of its own process; through the other's debug port any object there can be called, which is also how
 * Miniflare joins processes. The gateway is the production bundle and knows nothing of this. A call fails as the connection does, and
 * whoever comes next connects anew: whether to ask again is the gateway's affair.
 */
import { DurableObject } from 'cloudflare:workers';

export class FarOwner extends DurableObject {
  #owner;

  async call(message) {
    this.#owner ??= this.env.PROCESSES.connect(this.env.OWNERS_ADDRESS).getActor(
      'owners',
      'LimiterOwner',
      this.ctx.id.toString(),
    );
    const owner = this.#owner;
    try {
      return await owner.call(message);
    } catch (error) {
      if (this.#owner === owner) this.#owner = undefined;
      throw error;
    }
  }
}

export default {};
