import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it, test, vi } from 'vitest';
import { type LogRecord, readLog } from '../../scripts/limiter/replay/log.ts';
import { LogClock } from '../../scripts/limiter/replay/log-clock.ts';
import { replay } from '../../scripts/limiter/replay/replay.ts';
import { Side } from '../../scripts/limiter/replay/side.ts';
import { type Outcomes, type ReplayReport, Tally } from '../../scripts/limiter/replay/tally.ts';
import { replayCommand } from '../../scripts/limiter/replay.ts';
import { rulesetFrom, withDescriptors } from '../policy/rules-from.ts';
import { runLimiter } from './rule-commands.ts';

/** Thousands of requests through the whole engine take seconds where other tests run beside. */
vi.setConfig({ testTimeout: 30_000 });

/** The beginning of a second, a minute and a day. */
const START_MS = 20_000 * 86_400_000;

interface Sent {
  /** Since `START_MS`. */
  readonly atMs: number;
  readonly caller?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly cost?: number;
}

function keyOf(caller: string): string {
  return createHash('sha256').update(caller).digest('hex');
}

function lineOf({ atMs, caller = 'ada', attributes, cost }: Sent): string {
  const known = { api_key: keyOf(caller), tier: 'free', ...attributes };
  return JSON.stringify({ time: START_MS + atMs, attributes: known, ...(cost !== undefined && { cost }) });
}

function textOf(log: readonly Sent[]): string {
  return log.map((sent) => `${lineOf(sent)}\n`).join('');
}

async function* chunksOf(text: string, bytes = 65_536): AsyncGenerator<Uint8Array> {
  const all = Buffer.from(text);
  for (let from = 0; from < all.length; from += bytes) yield all.subarray(from, from + bytes);
}

async function recordsOf(text: string, bytes?: number): Promise<readonly LogRecord[]> {
  const records: LogRecord[] = [];
  for await (const batch of readLog(chunksOf(text, bytes), 'log')) records.push(...batch);
  return records;
}

/** Rules of one tier, in flow style. */
function rulesOf(...limits: readonly string[]): string {
  return withDescriptors(
    `  - { key: tier, value: free, rate_limit: [${limits.map((limit) => `{ ${limit} }`).join(', ')}] }`,
  );
}

function replayed(log: readonly Sent[], a: string, b = a, top = 10): Promise<ReplayReport> {
  const records = readLog(chunksOf(textOf(log)), 'log');
  const [one, two] = [a, b].map((yaml, at) => ({ name: `${at}.yaml`, ruleset: rulesetFrom(yaml) }));
  return replay(records, [one!, two!], { top, onProgress: () => {} });
}

/** One request every `everyMs`. */
function steady(count: number, everyMs: number, more: Partial<Sent> = {}): readonly Sent[] {
  return Array.from({ length: count }, (_, at) => ({ atMs: at * everyMs, ...more }));
}

const BURSTY: fc.Arbitrary<readonly Sent[]> = fc
  .array(
    fc.record({
      gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 3_000 })),
      caller: fc.constantFrom('ada', 'bob', 'eve'),
    }),
    { minLength: 1, maxLength: 300 },
  )
  .map((gaps) => {
    let atMs = 0;
    return gaps.map(({ gapMs, caller }) => {
      atMs += gapMs;
      return { atMs, caller };
    });
  });

describe('the same ruleset twice', () => {
  test('gains nobody and loses nobody anything, whatever its rules', async () => {
    const limit = fc.oneof(
      fc
        .constantFrom('token_bucket', 'fixed_window', 'sliding_window', 'sliding_log', 'leaky_bucket')
        .map((algorithm) => `policy: a, unit: second, requests_per_unit: 40, algorithm: ${algorithm}`),
      fc.constantFrom('strict', 'leased').map((consistency) => {
        return `policy: b, unit: second, requests_per_unit: 20, burst: 5, consistency: ${consistency}`;
      }),
      fc.constant('policy: c, unit: second, requests_per_unit: 10, per: []'),
      fc.constant('policy: d, unit: second, requests_per_unit: 10, shadow_mode: true'),
      fc.constant('policy: e, unit: second, requests_per_unit: 30, scope: local'),
      fc.constant('policy: f, algorithm: concurrency, max_in_flight: 1'),
    );
    const limits = fc.uniqueArray(limit, {
      minLength: 1,
      maxLength: 4,
      selector: (text) => text.slice(0, 9),
    });
    await fc.assert(
      fc.asyncProperty(BURSTY, limits, async (log, those) => {
        const { requests, rulesets, gained, lost, policies } = await replayed(log, rulesOf(...those));
        expect([gained, lost]).toEqual(Array(2).fill({ requests: 0, callers: 0, top: [], others: 0 }));
        expect(rulesets[0]).toEqual({ ...rulesets[1], rules: '0.yaml' });
        expect(rulesets[0].admitted + rulesets[0].denied).toBe(requests);
        for (const { refused } of policies) expect(refused[0]).toBe(refused[1]);
      }),
      { numRuns: 40 },
    );
  });
});

describe('of a fixed window', () => {
  const QUOTA = fc.constantFrom(1, 3, 40, 60);

  /** What one caller is admitted in each second, summed. */
  function expectedOf(log: readonly Sent[], quota: number): number {
    const counts = new Map<string, number>();
    for (const { atMs, caller } of log) {
      const name = `${caller} ${Math.floor(atMs / 1_000)}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return [...counts.values()].reduce((sum, count) => sum + Math.min(count, quota), 0);
  }

  const limitOf = (quota: number) => `unit: second, requests_per_unit: ${quota}, algorithm: fixed_window`;

  test('exactly the quota is admitted in each, leased or not, also where many come at once', async () => {
    const consistency = fc.constantFrom('auto', 'strict', 'leased');
    await fc.assert(
      fc.asyncProperty(BURSTY, QUOTA, consistency, async (log, quota, how) => {
        const { rulesets } = await replayed(log, rulesOf(`${limitOf(quota)}, consistency: ${how}`));
        expect(rulesets[0].admitted).toBe(expectedOf(log, quota));
      }),
      { numRuns: 60 },
    );
  });

  test('as many are refused in shadow as would be refused in earnest, whatever is leased beside it', async () => {
    await fc.assert(
      fc.asyncProperty(BURSTY, QUOTA, async (log, quota) => {
        const plenty = 'policy: plenty, unit: second, requests_per_unit: 100000, consistency: leased';
        const earnest = rulesOf(limitOf(quota), plenty);
        const shadow = rulesOf(`${limitOf(quota)}, shadow_mode: true`, plenty);
        const { policies, rulesets, lost, gained } = await replayed(log, earnest, shadow);
        const denied = log.length - expectedOf(log, quota);
        expect(policies.filter(({ policy }) => policy === 'default')).toEqual([
          { policy: 'default', shadow: false, refused: [denied, 0] },
          { policy: 'default', shadow: true, refused: [0, denied] },
        ]);
        expect(rulesets[1].admitted).toBe(log.length);
        expect([gained.requests, lost.requests]).toEqual([denied, 0]);
      }),
      { numRuns: 60 },
    );
  });
});

describe('of a token bucket', () => {
  it('admits the burst, and then the rate, to the last request where nothing is leased', async () => {
    // 50 requests a second for 100 s, less the last 20 ms: 5 at once, and 999.8 that come back.
    const strict = rulesOf('unit: second, requests_per_unit: 10, burst: 5');
    expect((await replayed(steady(5_000, 20), strict)).rulesets[0].admitted).toBe(1_004);
  });

  it('never admits more through a lease, and never less than the rate', async () => {
    // 1,000 requests a second for 10 s, less the last millisecond: 100 at once, and 4,999.5 that come back.
    const leased = rulesOf('unit: second, requests_per_unit: 500, burst: 100, consistency: leased');
    const { admitted } = (await replayed(steady(10_000, 1), leased)).rulesets[0];
    expect(admitted).toBeLessThanOrEqual(5_099);
    expect(admitted).toBeGreaterThanOrEqual(5_000);
  });

  it('denies in the isolate where the rule is local', async () => {
    const local = rulesOf('unit: minute, requests_per_unit: 10, scope: local');
    const { rulesets } = await replayed(steady(30, 1), local, rulesOf('unit: minute, requests_per_unit: 20'));
    expect(rulesets.map(({ admitted }) => admitted)).toEqual([10, 20]);
  });
});

describe('who gains and who loses', () => {
  const A = rulesOf(
    'unit: minute, requests_per_unit: 10',
    'policy: all, unit: minute, requests_per_unit: 25, per: []',
  );
  const B = rulesOf('unit: minute, requests_per_unit: 5');

  it('is told by caller, the one with the most first, keys by the first digits of their hash', async () => {
    const log = [
      ...steady(8, 1),
      ...steady(6, 1, { caller: 'bob' }),
      ...steady(20, 1, { caller: 'eve' }),
    ].map((sent, atMs) => ({ ...sent, atMs }));
    const { lost, gained, policies, rulesets } = await replayed(log, A, B);
    const short = (caller: string) => keyOf(caller).slice(0, 12);
    expect(lost).toEqual({
      requests: 9,
      callers: 3,
      top: [
        { attribute: 'api_key', value: short('eve'), requests: 5 },
        { attribute: 'api_key', value: short('ada'), requests: 3 },
        { attribute: 'api_key', value: short('bob'), requests: 1 },
      ],
      others: 0,
    });
    expect(gained.requests).toBe(0);
    expect(rulesets).toMatchObject([
      { admitted: 24, denied: 10 },
      { admitted: 15, denied: 19 },
    ]);
    expect(policies).toEqual([
      { policy: 'default', shadow: false, refused: [10, 19] },
      { policy: 'all', shadow: false, refused: [0, 0] },
    ]);
    const backwards = await replayed(log, B, A, 1);
    expect(backwards.gained).toMatchObject({ requests: 9, callers: 3, top: [{ requests: 5 }] });
  });

  it('may be a user or an address, an IPv6 one by its network', async () => {
    const [a, b] = ['unit: minute, requests_per_unit: 1', 'unit: minute, requests_per_unit: 2'].map((limit) =>
      rulesOf(limit),
    );
    const log = [
      { atMs: 0, attributes: { user: 'ada' } },
      { atMs: 1, attributes: { user: 'ada' } },
      { atMs: 2, attributes: { remote_address: '2001:db8::1' } },
      { atMs: 3, attributes: { remote_address: '2001:db8::2' } },
    ].map(({ atMs, attributes }) =>
      JSON.stringify({ time: START_MS + atMs, attributes: { tier: 'free', ...attributes } }),
    );
    const rulesets = [a!, b!].map((yaml) => ({ name: '', ruleset: rulesetFrom(yaml) }));
    const records = readLog(chunksOf(log.join('\n')), 'log');
    const { gained } = await replay(records, [rulesets[0]!, rulesets[1]!], { top: 5, onProgress: () => {} });
    expect(gained.top).toEqual([
      { attribute: 'user', value: 'ada', requests: 1 },
      { attribute: 'remote_address', value: '2001:db8:0:0:0:0:0:0/64', requests: 1 },
    ]);
  });
});

describe('costs', () => {
  const limit = 'unit: minute, requests_per_unit: 100';
  const withCosts = (costs: string) => `${rulesOf(limit)}costs: [${costs}]\n`;
  const search = { attributes: { route: '/search', method: 'GET' } };

  it('are those of each ruleset where the log has none', async () => {
    const [a, b] = ['{ route: /search, cost: 10 }', '{ route: /search, cost: 50 }'].map(withCosts);
    const { rulesets, lost } = await replayed(steady(12, 1, search), a!, b!);
    expect(rulesets.map(({ admitted }) => admitted)).toEqual([10, 2]);
    expect(lost.requests).toBe(8);
  });

  it('are those of the log where it has them', async () => {
    const [a, b] = ['{ route: /search, cost: 10 }', '{ route: /search, reserve: 50 }'].map(withCosts);
    const { rulesets } = await replayed(steady(12, 1, { ...search, cost: 25 }), a!, b!);
    expect(rulesets.map(({ admitted }) => admitted)).toEqual([4, 4]);
  });

  it('that can never fit are impossible, and no denial', async () => {
    const { rulesets, gained } = await replayed(
      steady(3, 1, { cost: 60 }),
      rulesOf('unit: minute, requests_per_unit: 50'),
      rulesOf(limit),
    );
    expect(rulesets).toMatchObject([
      { admitted: 0, denied: 0, impossible: 3 },
      { admitted: 1, denied: 2, impossible: 0 },
    ]);
    expect(gained.requests).toBe(1);
  });

  it('that are estimates end as their default', async () => {
    const window = `${rulesOf(`${limit}, algorithm: fixed_window`)}costs: `;
    const dear = `${window}[{ route: /search, reserve: 10, default: 40 }]\n`;
    const cheap = `${window}[{ route: /search, reserve: 40, default: 10 }]\n`;
    // Far enough apart for the word of each correction to have arrived.
    const { rulesets, notes } = await replayed(steady(12, 1_000, search), dear, cheap);
    // At 40 each the third still finds the 10 that it reserves; at 10 each the seventh finds its 40.
    expect(rulesets.map(({ admitted }) => admitted)).toEqual([3, 7]);
    expect(notes).toEqual([expect.stringContaining('an estimate costs its default')]);
  });
});

test('a slot is free again at once, and the report says so', async () => {
  const { rulesets, notes } = await replayed(
    steady(50, 1),
    rulesOf('algorithm: concurrency, max_in_flight: 1'),
    rulesOf('unit: minute, requests_per_unit: 100'),
  );
  expect(notes).toEqual([expect.stringContaining('as if requests took no time')]);
  expect(rulesets[0].admitted).toBe(50);
});

test('what a leaky bucket holds back is admitted, and counted; what no rule matches passes', async () => {
  const leaky = rulesOf('unit: second, requests_per_unit: 10, algorithm: leaky_bucket, max_delay: 300ms');
  const other = withDescriptors(
    '  - { key: tier, value: other, rate_limit: { unit: minute, requests_per_unit: 1 } }',
  );
  const { rulesets } = await replayed(steady(10, 1), leaky, other);
  expect(rulesets).toMatchObject([
    { admitted: 4, delayed: 3, denied: 6, unmatched: 0 },
    { admitted: 10, delayed: 0, denied: 0, unmatched: 10 },
  ]);
});

test.each([
  // Ten callers a second, of one request each. At rest a second later, an owner is kept for the 15 s that it may be called again.
  ['in memory', 60, 150],
  // At rest a minute later, of which it is stored for 45 s.
  ['stored', 1, 600],
])('owners do not outlive what they count, %s', async (_, quota, owners) => {
  const sizes: number[] = [];
  const clock = new LogClock(START_MS);
  const rules = rulesOf(`unit: minute, requests_per_unit: ${quota}`);
  const side = new Side(rulesetFrom(rules), clock, { decided: () => {}, shadowDenied: () => {} });
  const log = Array.from({ length: 1_000 }, (_, at) => ({ atMs: at * 100, caller: `caller ${at}` }));
  for (const record of await recordsOf(textOf(log))) {
    await clock.reach(record.atMs);
    side.decide(record);
    sizes.push(side.owners.size);
  }
  expect(Math.max(...sizes)).toBe(owners);
  await clock.reach(START_MS + 1_000_000);
  expect(side.owners.size).toBe(0);
});

test('requests of one instant are decided at that instant, however many', async () => {
  // More than may be in flight at once, in the last millisecond of a window.
  const log = Array.from({ length: 200 }, () => ({ atMs: 999 }));
  const window = 'unit: second, requests_per_unit: 100, algorithm: fixed_window, consistency: strict';
  expect((await replayed(log, rulesOf(window))).rulesets[0]).toMatchObject({ admitted: 100, denied: 100 });
});

test('a hundred thousand callers are told apart, and the requests of all others are counted together', () => {
  const rules = { name: '', ruleset: rulesetFrom(rulesOf('unit: minute, requests_per_unit: 1')) };
  const tally = new Tally([rules, rules]);
  const outcome = { isUnmatched: false, isDelayed: false, refusedBy: [] };
  const outcomes: Outcomes = [
    { ...outcome, kind: 'allowed' },
    { ...outcome, kind: 'denied' },
  ];
  for (let at = 0; at < 100_005; at += 1) {
    const attributes = { user: `u${at}` };
    tally.decided({ atMs: at, number: at, place: -1, attributes, cost: undefined, bytes: 0 }, outcomes);
  }
  expect(tally.report(0, []).lost).toEqual({ requests: 100_005, callers: 100_000, top: [], others: 5 });
});

test('what a caller has used is not forgotten while its owner is stored', async () => {
  const log = [...steady(3, 1), ...[1, 2, 3].map((hour) => ({ atMs: hour * 3_600_000 }))];
  const { rulesets } = await replayed(
    log,
    rulesOf('unit: day, requests_per_unit: 4, algorithm: fixed_window'),
  );
  expect(rulesets[0]).toMatchObject({ admitted: 4, denied: 2 });
});

describe('a log', () => {
  const line = lineOf({ atMs: 0 });

  it('is read alike however its chunks are cut, with or without a line feed at the end', async () => {
    const text = textOf(steady(20, 3, { attributes: { user: 'zoë\u2028\u{1f600}' } }));
    const whole = await recordsOf(text);
    expect(whole).toHaveLength(20);
    for (const bytes of [1, 7, 64, 1_000]) {
      expect(await recordsOf(text, bytes)).toEqual(whole);
      expect((await recordsOf(text.trimEnd(), bytes)).map(({ number }) => number)).toEqual(
        whole.map(({ number }) => number),
      );
    }
  });

  it('may have blank lines, carriage returns, other fields and fractions of milliseconds', async () => {
    const records = await recordsOf(
      `\n{"time": ${START_MS}.75, "attributes": {}, "status": 200}\r\n\n${line}\n`,
    );
    expect(records.map(({ number, atMs }) => [number, atMs])).toEqual([
      [2, START_MS],
      [4, START_MS],
    ]);
  });

  it('may be out of order by some lines, and by no more', async () => {
    const order = Array.from({ length: 20_000 }, (_, at) => ({ atMs: at }));
    const late = (places: number) => {
      const moved = [...order.slice(1, 1 + places), order[0]!, ...order.slice(1 + places)];
      return recordsOf(textOf(moved));
    };
    expect((await late(10_000)).map(({ atMs }) => atMs - START_MS)).toEqual(order.map(({ atMs }) => atMs));
    await expect(late(10_001)).rejects.toThrow(
      /^log:10002: is 1 ms too late: a line stands at most 10000 lines behind/,
    );
  });

  it.each([
    ['is not a JSON object', '{'],
    ['is not a JSON object', '[]'],
    ['is not a JSON object', 'null'],
    ['time: wants milliseconds since 1970, not nothing', '{"attributes": {}}'],
    ['time: wants milliseconds since 1970, not "2026-01-01"', '{"time": "2026-01-01", "attributes": {}}'],
    ['time: wants milliseconds since 1970, not -1', '{"time": -1, "attributes": {}}'],
    ['time: wants milliseconds since 1970, not 1e+300', '{"time": 1e300, "attributes": {}}'],
    ['attributes: wants an object, not nothing', '{"time": 1}'],
    ['attributes: wants an object, not a list', '{"time": 1, "attributes": ["a"]}'],
    ['attributes.asn: wants text, not 64500', '{"time": 1, "attributes": {"asn": 64500}}'],
    ['cost: wants a whole number from 0 to 1000000, not -1', '{"time": 1, "attributes": {}, "cost": -1}'],
    ['cost: wants a whole number from 0 to 1000000, not 1.5', '{"time": 1, "attributes": {}, "cost": 1.5}'],
    ['has more than 262144 bytes', `"${'x'.repeat(300_000)}"`],
  ])('with a wrong line is refused with its place: %s', async (message, text) => {
    await expect(recordsOf(`${line}\n${text}\n${line}\n`)).rejects.toThrow(`log:2: ${message}`);
  });

  it('must not hold keys, and a message never repeats one', async () => {
    const raw = '{"time": 1, "attributes": {"api_key": "sk_live_secret"}}';
    await expect(recordsOf(raw)).rejects.toThrow(
      /^log:1: attributes\.api_key: wants the SHA-256(?!.*secret)/,
    );
    await expect(recordsOf(`${raw.slice(0, -1)}`)).rejects.toThrow(/^log:1: is not a JSON object$/);
  });

  it('that is longer than memory is held line by line', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      while (true) yield Buffer.alloc(65_536, 'x');
    }
    await expect(readLog(endless(), 'log').next()).rejects.toThrow('log:1: has more than 262144 bytes');
  });
});

describe('limiter replay', () => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-limiter-replay-'));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  afterAll(() => rmSync(folder, { recursive: true }));
  const a = file('a.yaml', rulesOf('unit: minute, requests_per_unit: 10'));
  const b = file(
    'b.yaml',
    rulesOf(
      'unit: minute, requests_per_unit: 5',
      'unit: minute, requests_per_unit: 1, policy: try, shadow_mode: true',
    ),
  );
  file('broken.yaml', 'domain: d\n');
  const log = file(
    'log.jsonl',
    textOf([
      ...steady(12, 1),
      ...steady(2, 1, { caller: 'bob' }).map((sent) => ({ ...sent, atMs: sent.atMs + 20 })),
    ]),
  );
  file('malformed.jsonl', `${lineOf({ atMs: 0 })}\nnonsense\n`);

  const limiter = (...args: string[]) => runLimiter((finish) => replayCommand(finish), ...args);

  it('says what both would have done, and who would notice', async () => {
    const { code, stdout, stderr } = await limiter(log, '--rules', a, '--rules', b);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`14 requests from 2024-10-04T00:00:00.000Z to 2024-10-04T00:00:00.021Z (21ms)

A: ${a} (domain test)
B: ${b} (domain test)

                     A  B
admitted            12  7
denied               2  7

refused              A  B
by "default"         2  7
in shadow by "try"   0  5

nobody would gain

would lose: 5 requests (admitted under A, denied under B)
  5  api_key=${keyOf('ada').slice(0, 12)}`);
  });

  it('prints JSON', async () => {
    const { stdout } = await limiter(log, '--rules', a, '--rules', b, '--json', '--top', '0');
    expect(JSON.parse(stdout)).toMatchObject({
      requests: 14,
      lost: { requests: 5, callers: 1, top: [], others: 0 },
    });
  });

  it('of an empty log is content', async () => {
    const { code, stdout } = await limiter(file('empty.jsonl', ''), '--rules', a, '--rules', b);
    expect(code).toBe(0);
    expect(stdout).toContain('the log holds no requests');
  });

  it.each([
    [1, 'malformed.jsonl --rules a.yaml --rules b.yaml', /malformed\.jsonl:2: is not a JSON object$/],
    [1, 'log.jsonl --rules a.yaml --rules broken.yaml', /broken\.yaml:1:1 descriptors: is required/],
    [2, 'log.jsonl --rules a.yaml', /wants two rule files, the one in force first, and has 1/],
    [2, 'log.jsonl', /and has 0/],
    [2, 'log.jsonl --rules a.yaml --rules b.yaml --rules a.yaml', /and has 3/],
    [2, 'log.jsonl --rules a.yaml --rules none.yaml', /cannot read .*none\.yaml/],
    [2, 'none.jsonl --rules a.yaml --rules b.yaml', /cannot read .*none\.jsonl: ENOENT/],
    [2, '. --rules a.yaml --rules b.yaml', /cannot read .*: it is a folder/],
    [2, 'log.jsonl --rules a.yaml --rules b.yaml --top -1', /wants a whole number/],
    [2, '--rules a.yaml --rules b.yaml', /missing required argument/],
  ])('ends with %i and a sentence: %s', async (code, args, sentence) => {
    const named = args.split(' ').map((arg) => (arg.includes('.') ? join(folder, arg) : arg));
    const ended = await limiter(...named);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toMatch(sentence);
    expect(ended.stderr).not.toMatch(/^ {4}at /m);
  });

  it('replays 20,000 requests of 500 callers in seconds', async () => {
    const many = Array.from({ length: 20_000 }, (_, at) => ({
      atMs: at * 5,
      caller: `caller ${(at * 7) % 500}`,
    }));
    const long = file('long.jsonl', textOf(many));
    const { code, stdout } = await limiter(long, '--rules', a, '--rules', b, '--json');
    expect(code).toBe(0);
    // Each has 40 requests in 100 s, one every 2.5 s: 5 or 10 at once, and 5 or 10 a minute.
    const { requests, rulesets } = JSON.parse(stdout) as ReplayReport;
    expect(requests).toBe(20_000);
    expect(rulesets.map(({ admitted }) => admitted / 500)).toEqual([26, 13]);
  });
});
