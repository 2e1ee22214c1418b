import { describe, expect, test } from 'vitest';
import { Clock } from '../../scripts/sim/clock.ts';
import { HEALTHY } from '../../scripts/sim/faults.ts';
import { OwnerHost } from '../../scripts/sim/owner-host.ts';
import { OwnerServer } from '../../scripts/sim/owner-server.ts';
import { Time } from '../../scripts/sim/time.ts';
import { MESSAGE_FORMAT, type OwnerCall } from '../../src/engine/messages.ts';

const call = (holder: string): OwnerCall => ({
  format: MESSAGE_FORMAT,
  holder,
  version: { activation: 1, builtAtMs: 0 },
});

function serve(faults = HEALTHY) {
  const time = new Time();
  const clock = new Clock(time, 0);
  const host = new OwnerHost({
    name: 'anne',
    time,
    rawMs: () => clock.nowMs,
    countersMax: 10,
    blocks: 1,
    copiesMessages: true,
  });
  const server = new OwnerServer({
    host,
    clock,
    handle: (each) => host.handle(each),
    time,
    faults: () => faults,
  });
  const heard: string[] = [];
  const send = (holder: string) =>
    server.receive(call(holder), {
      answered: () => heard.push(`${holder} at ${time.elapsedMs}`),
      failed: ({ overloaded, retryable }) =>
        heard.push(`${holder} ${overloaded ? 'overloaded' : retryable ? 'retryable' : 'failed'}`),
    });
  return { time, server, send, heard };
}

describe('an owner', () => {
  test('starts, then works on one call at a time, in the order of arrival', async () => {
    const { time, send, heard } = serve({ ...HEALTHY, startMs: 20, serviceMs: 3 });
    for (const holder of ['a', 'b', 'c']) send(holder);
    await time.advance(100);
    send('d');
    await time.advance(100);
    expect(heard).toEqual(['a at 23', 'b at 26', 'c at 29', 'd at 103']);
  });

  test('refuses what would wait too long, and only that', async () => {
    const { time, send, heard } = serve({ ...HEALTHY, startMs: 0, serviceMs: 10, queueMs: 20 });
    for (const holder of ['a', 'b', 'c', 'd']) send(holder);
    await time.advance(15);
    send('e');
    await time.advance(100);
    expect(heard).toEqual(['d overloaded', 'a at 10', 'b at 20', 'c at 30', 'e at 40']);
  });

  test('loses its queue when it is evicted, and starts anew', async () => {
    const { time, server, send, heard } = serve({ ...HEALTHY, startMs: 5, serviceMs: 10 });
    send('a');
    send('b');
    await time.advance(16);
    server.evict();
    send('c');
    await time.advance(100);
    expect(heard).toEqual(['a at 15', 'b retryable', 'c at 31']);
    expect(server.losses).toEqual({ evictions: 1, steps: 0 });
  });

  test('does nothing while it stalls', async () => {
    const { time, server, send, heard } = serve({ ...HEALTHY, startMs: 0, serviceMs: 1 });
    server.stall(40);
    send('a');
    await time.advance(100);
    expect(heard).toEqual(['a at 41']);
  });
});

describe('a clock', () => {
  test('drifts, steps, and tells whole milliseconds', async () => {
    const time = new Time();
    const clock = new Clock(time, 1_000);
    const startMs = clock.nowMs;
    await time.advance(10_000.5);
    expect(clock.nowMs - startMs).toBe(10_010);
    clock.step(-60_000);
    clock.step(30_000);
    expect([clock.nowMs - startMs, clock.stepsForward]).toEqual([10_010 - 30_000, 1]);
  });
});
