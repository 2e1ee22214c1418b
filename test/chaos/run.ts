/** A steady load on gateways whose owners go away and come back: from when all is well until all is well again. */
import { setTimeout } from 'node:timers/promises';
import { type Answer, type Caller, Load, tallyOf } from './load.ts';
import { type Build, endTopology, GATEWAYS, newTopology, startTopology, type Topology } from './topology.ts';

export interface Customer extends Caller {
  readonly tier: 'strict' | 'leased' | 'deep';
  /** Who decides when all is well, among others. */
  readonly source: RegExp;
}

/** They ask for five times their limit. */
export const BUSY: readonly Customer[] = [
  { key: 'k_strict', tier: 'strict', source: /owner/, perSecond: 100 },
  { key: 'k_leased', tier: 'leased', source: /lease/, perSecond: 100 },
];

/** They ask for half of it, or have as much in store. */
export const MODEST: readonly Customer[] = [
  { key: 'k_strict_modest', tier: 'strict', source: /owner/, perSecond: 10 },
  { key: 'k_leased_modest', tier: 'leased', source: /owner|lease/, perSecond: 10 },
  { key: 'k_deep', tier: 'deep', source: /owner/, perSecond: 20 },
];

export const CUSTOMERS = [...BUSY, ...MODEST];

/** Taken from the deep bucket long before the outage: an owner that had stored nothing would be found out by it. */
const SPENT = { waves: 20, requestsPerWave: 20 };

/** For so long the owners are away, and then until everybody has noticed. */
const AWAY_MS = 2_000;

/** All is well when it was for so long. */
const WELL_MS = 1_000;

/** Fallback alone decides when it did for so long. */
const ALONE_MS = 500;

/** Deciding without an owner begins within a second, and asking it again within two; the rest is for the machine. */
const SETTLED_MS_MAX = 20_000;

const POLL_MS = 20;

export interface Outage {
  readonly fromMs: number;
  /** When the owners were called back. */
  readonly untilMs: number;
  /** Their memory is gone. */
  readonly isCrash: boolean;
}

export interface Run {
  readonly answers: readonly Answer[];
  readonly outages: readonly Outage[];
  /** What the machine added to a wait at its worst. */
  readonly slowestPulseMs: number;
}

export interface World {
  readonly topology: Topology;
  readonly load: Load;
}

/** It ends in order only after fallback alone has decided in each outage, and after owners and leases have alone decided again. */
export async function runThrough(
  built: Build,
  outage: (world: World) => Promise<readonly Outage[]>,
): Promise<Run> {
  const topology = await newTopology(built);
  const load = new Load(topology.gatewayPorts);
  try {
    await startTopology(topology);
    await spend(load);
    const startedMs = performance.now();
    load.start(CUSTOMERS);
    await until('in order', () => performance.now() - startedMs > 2 * WELL_MS && isWell(load), load);
    const outages = await outage({ topology, load });
    await until('in order again', () => isWell(load), load);
    await load.end();
    return { answers: load.answers, outages, slowestPulseMs: load.slowestPulseMs };
  } catch (error) {
    const logs = [topology.owners, ...topology.gateways].map(({ log }) => log);
    throw new Error(`${error}\nThe processes wrote:\n${logs.join('\n')}`, { cause: error });
  } finally {
    await load.end().finally(() => endTopology(topology));
  }
}

async function spend(load: Load): Promise<void> {
  for (let wave = 0; wave < SPENT.waves; wave += 1)
    await Promise.all(Array.from({ length: SPENT.requestsPerWave }, () => load.send('k_deep')));
}

export async function kill({ topology: { owners }, load }: World): Promise<Outage> {
  const fromMs = performance.now();
  await owners.kill();
  await allNoticed(load, fromMs);
  const untilMs = performance.now();
  await owners.start();
  return { fromMs, untilMs, isCrash: true };
}

export async function hold({ topology: { owners }, load }: World): Promise<Outage> {
  const fromMs = performance.now();
  owners.hold();
  await allNoticed(load, fromMs);
  const untilMs = performance.now();
  owners.goOn();
  return { fromMs, untilMs, isCrash: false };
}

/** The second time as soon as anybody was answered by an owner again. */
export async function killTwice(world: World): Promise<readonly Outage[]> {
  const { load } = world;
  const first = await kill(world);
  const isBack = () =>
    load.answers.some(({ sentMs, source }) => sentMs > first.untilMs && source === 'owner');
  await until('asked again', isBack, load);
  return [first, await kill(world)];
}

function allNoticed(load: Load, fromMs: number): Promise<void> {
  const isLongEnough = () => performance.now() - fromMs >= AWAY_MS;
  return until('left to fallback', () => isLongEnough() && isLeftToFallback(load), load);
}

async function until(what: string, isSo: () => boolean, load: Load): Promise<void> {
  const untilMs = performance.now() + SETTLED_MS_MAX;
  while (!isSo()) {
    if (performance.now() > untilMs)
      throw new Error(`not ${what} within ${SETTLED_MS_MAX} ms; last:\n${tallyOf(load.recent(WELL_MS))}`);
    await setTimeout(POLL_MS);
  }
}

function isWell(load: Load): boolean {
  const answers = load.recent(WELL_MS);
  const isSeen = ({ key, source }: Customer, gateway: number) =>
    answers.some((answer) => answer.key === key && answer.gateway === gateway && source.test(answer.source));
  return answers.every(({ source }) => source !== 'fallback') && everywhere(isSeen);
}

function isLeftToFallback(load: Load): boolean {
  const answers = load.recent(ALONE_MS);
  const isSeen = ({ key }: Customer, gateway: number) =>
    answers.some((answer) => answer.key === key && answer.gateway === gateway);
  return answers.every(({ source }) => source === 'fallback') && everywhere(isSeen);
}

/** For each customer at each gateway. */
function everywhere(isSo: (customer: Customer, gateway: number) => boolean): boolean {
  const gateways = Array.from({ length: GATEWAYS }, (_, gateway) => gateway);
  return CUSTOMERS.every((customer) => gateways.every((gateway) => isSo(customer, gateway)));
}
