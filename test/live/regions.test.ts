/**
 * One limit for several regions, 150 ms apart, on the bundle as it is served: nobody waits for another region, whether the owner of the whole
 * answers late, is cut off or never answers, and all regions together stay within what is printed.
 */
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { median } from '../../scripts/bench/statistics.ts';
import { readRules } from '../../scripts/rules.ts';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts } from '../../scripts/serve/ports.ts';
import { type RegionBound, regionBoundOf } from '../../src/engine/bound-regions.ts';

const START_MS_MAX = 60_000;
const GATEWAYS = 3;
const RULES = join(import.meta.dirname, 'regions.yaml');
const LATENCY_MS = 150;

/** The day-long limit, of which half a unit comes back in a test: what is admitted is exact. */
const QUOTA = 200;

/** Of the limit, in each of the three regions. */
const START_CREDIT = QUOTA / 4;

/** After so long without a request a region has given up what it had borrowed, and the owner of the whole knows. */
const SETTLED_MS = 3_000;

/** A lease lives for five seconds. */
const LEASE_MS = 5_000;

const WHEREABOUTS = {
  weur: { continent: 'EU', country: 'FR' },
  enam: { continent: 'NA', country: 'US', longitude: '-74' },
  apac: { continent: 'AS', country: 'JP' },
};

type Region = keyof typeof WHEREABOUTS;

const REGIONS = Object.keys(WHEREABOUTS) as readonly Region[];

let served: ServeChild;
let port: number;
let bound: RegionBound;
const agent = new Agent({ connections: 64, pipelining: 1 });

beforeAll(async () => {
  const rule = (await readRules(RULES)).rules.find(({ limit }) => limit?.quota === QUOTA)!;
  bound = regionBoundOf(rule, rule.limit!, { regions: REGIONS.length, largestCost: 1, crashUnits: 0 })!;
  port = await freePorts(GATEWAYS + 1);
  served = await startServe(
    ...['--port', String(port), '--gateways', String(GATEWAYS), '--rules', RULES],
    ...['--faults', String(port + GATEWAYS), '--region-latency', String(LATENCY_MS)],
  );
}, START_MS_MAX);

afterAll(async () => {
  await agent.close();
  await served?.stop();
});

afterEach(async () => {
  for (const name of REGIONS) await setRegion(name, 'ok');
});

const control = (path: string) => `http://127.0.0.1:${port + GATEWAYS}${path}`;

async function setRegion(name: Region, mode: 'cut' | 'ok'): Promise<void> {
  const { status } = await fetch(control('/region'), {
    method: 'PUT',
    body: JSON.stringify({ name, mode }),
  });
  expect(status).toBe(200);
}

interface Counts {
  readonly ownerCalls: number;
  readonly rootCalls: number;
}

async function counts(method: 'GET' | 'DELETE' = 'GET'): Promise<Counts> {
  return (await (await fetch(control('/counts'), { method })).json()) as Counts;
}

interface Answer {
  readonly region: Region;
  readonly status: number;
  readonly source: string;
  readonly tookMs: number;
}

/** Each region has a gateway of its own. */
async function send(key: string, region: Region): Promise<Answer> {
  const startMs = performance.now();
  const response = await request(`http://127.0.0.1:${port + REGIONS.indexOf(region)}/`, {
    dispatcher: agent,
    headers: {
      'x-api-key': key,
      'cf-connecting-ip': '192.0.2.1',
      'cf-blob': JSON.stringify(WHEREABOUTS[region]),
    },
  });
  await response.body.dump();
  const source = /desc="(\w+)"/.exec(String(response.headers['server-timing']))?.[1] ?? '';
  return { region, status: response.statusCode, source, tookMs: performance.now() - startMs };
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** So slow that regions hear of each other before all is spent. */
const PAUSE_MS = 20;

/** The regions send in turn for about so long. */
async function takeTurns(key: string, regions: readonly Region[], forMs: number): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  const untilMs = performance.now() + forMs;
  while (performance.now() < untilMs) {
    for (const region of regions) answers.push(await send(key, region));
    await sleep(PAUSE_MS);
  }
  return answers;
}

const admitted = (answers: readonly Answer[], region?: Region) =>
  answers.filter((answer) => answer.status === 200 && (region ?? answer.region) === answer.region).length;

/** A rule whose owner cannot answer in time is decided by the fallback, a second after; so nothing here waited for long. */
function expectAnsweredByOwners(answers: readonly Answer[]): void {
  const seen = new Set(answers.map(({ status, source }) => `${status} ${source}`));
  expect([...seen].filter((each) => !['200 owner', '429 owner', '429 deny_memory'].includes(each))).toEqual(
    [],
  );
}

describe('a request of a region', () => {
  it('waits for no other region: it takes as long as one of a limit that has a single owner', async () => {
    await counts('DELETE');
    const waves: { readonly single: Answer; readonly regional: readonly Answer[] }[] = [];
    const untilMs = performance.now() + 3_000;
    while (performance.now() < untilMs) {
      const [single, ...regional] = await Promise.all([
        send('k_global', 'enam'),
        ...REGIONS.map((region) => send('k_regional', region)),
      ]);
      waves.push({ single, regional });
      await sleep(PAUSE_MS);
    }
    const all = waves.flatMap(({ single, regional }) => [single, ...regional]);
    expect(new Set(all.map(({ status, source }) => `${status} ${source}`))).toEqual(new Set(['200 owner']));
    // What stands still stands still for a whole wave.
    const later = waves.flatMap(({ single, regional }) =>
      regional.map(({ tookMs }) => tookMs - single.tookMs),
    );
    expect(Math.max(...later)).toBeLessThan(LATENCY_MS);
    expect(median(later)).toBeLessThan(LATENCY_MS / 10);
    const { ownerCalls, rootCalls } = await counts();
    expect(ownerCalls).toBe(all.length);
    expect(rootCalls).toBeGreaterThan(REGIONS.length);
  }, 20_000);

  it('is answered at once by a region whose owner of the whole never answers', async () => {
    // Whoever asks first has the owner of the whole at home.
    await takeTurns('k_alone', ['apac'], 200);
    await setRegion('apac', 'cut');
    await counts('DELETE');
    const answers = await takeTurns('k_alone', ['weur', 'enam'], 4_000);
    expectAnsweredByOwners(answers);
    expect(Math.max(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(1_000);
    expect((await counts()).rootCalls).toBeGreaterThan(2);
    expect([admitted(answers, 'weur'), admitted(answers, 'enam')]).toEqual([START_CREDIT, START_CREDIT]);
  }, 20_000);
});

describe('a quota', () => {
  it('is one over the world: spent by two regions in turn, and by a third no more than its credit', async () => {
    const inTurn = await takeTurns('k_world', ['weur', 'enam'], 5_000);
    expectAnsweredByOwners(inTurn);
    expect(admitted(inTurn)).toBeGreaterThanOrEqual(QUOTA - 5);
    expect(admitted(inTurn)).toBeLessThanOrEqual(QUOTA + 2 * START_CREDIT);
    const third = await takeTurns('k_world', ['apac'], 2_000);
    expectAnsweredByOwners(third);
    expect(admitted(third)).toBeLessThanOrEqual(START_CREDIT);
    const again = await takeTurns('k_world', REGIONS, 2_000);
    expect(admitted([...inTurn, ...third, ...again])).toBeLessThanOrEqual(QUOTA + bound.coldStartUnits);
  }, 20_000);

  it('that one region leaves is another’s', async () => {
    const together = await takeTurns('k_left', ['weur', 'enam'], 1_000);
    const alone = await takeTurns('k_left', ['weur'], 8_000);
    expectAnsweredByOwners([...together, ...alone]);
    expect(admitted([...together, ...alone])).toBeGreaterThanOrEqual(QUOTA - 5);
  }, 20_000);
});

describe('a region that is cut off', () => {
  it('goes on within its part, and is whole again afterwards', async () => {
    const before = await takeTurns('k_cut', ['weur', 'enam'], 1_000);
    await setRegion('enam', 'cut');
    const during = await takeTurns('k_cut', ['weur', 'enam'], LEASE_MS + 2_000);
    expectAnsweredByOwners([...before, ...during]);
    expect(admitted(during, 'weur')).toBeGreaterThan(0);
    expect(admitted(during, 'enam')).toBeGreaterThan(0);
    expect(admitted([...before, ...during])).toBeLessThanOrEqual(bound.partition.burstUnits);

    await setRegion('enam', 'ok');
    await sleep(SETTLED_MS);
    const after = await takeTurns('k_cut', ['weur', 'enam'], 3_000);
    expectAnsweredByOwners(after);
    // All is spent by now, and what was admitted meanwhile is known: nobody is left but whoever has a credit still.
    expect(admitted(after)).toBeLessThanOrEqual(2 * START_CREDIT);
    expect(admitted(await takeTurns('k_cut', ['weur', 'enam'], 1_000))).toBe(0);
  }, 30_000);
});
