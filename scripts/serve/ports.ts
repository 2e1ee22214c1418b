/** Which ports a server needs, and whether they can be had: asked before anything is started, so that the answer is a sentence. */
import { createServer } from 'node:net';

const PORT_MAX = 65_535;

/** What stands in the way of these ports, as a sentence; undefined when all of them can be had, on loopback. */
export async function portProblem(ports: readonly number[]): Promise<string | undefined> {
  const repeated = ports.find((port, index) => ports.indexOf(port) !== index);
  if (repeated !== undefined) return `port ${repeated} is asked for twice`;
  const beyond = ports.find((port) => port > PORT_MAX);
  if (beyond !== undefined) return `port ${beyond} is beyond ${PORT_MAX}`;
  const free = await Promise.all(ports.map(isFree));
  const taken = ports.find((_, index) => !free[index]);
  return taken === undefined ? undefined : `port ${taken} is in use`;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1' }, () => probe.close(() => resolve(true)));
  });
}

/** `count` free ports next to each other: for tests and measurements, which start servers of their own. */
export async function freePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const first = await anyPort();
    const ports = Array.from({ length: count }, (_, index) => first + index);
    if ((await portProblem(ports)) === undefined) return first;
  }
  throw new Error(`no ${count} free ports next to each other`);
}

/** On a machine with a free range at all, a random place in it is nearly always free; a hundred misses mean there is none. */
const ATTEMPTS_MAX = 100;

function anyPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen({ port: 0, host: '127.0.0.1' }, () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
