/**
 * The bars: what the medians must reach, all in one place. `npm run bench -- --check` fails when one is missed.
 *
 * Each is a ratio or a difference against a baseline of the same run, so it holds on a slow machine as on a fast one.
 */

export type Bar = { readonly figure: string; readonly why: string } & (
  | { readonly atLeast: number }
  | { readonly atMost: number }
);

export const BARS: readonly Bar[] = [
  {
    figure: 'local.of_baseline',
    atLeast: 0.9,
    why: 'rules in the isolate cost at most a tenth of a forwarded request',
  },
  {
    figure: 'strict.of_object',
    atLeast: 0.8,
    why: 'an owner decision costs little beside the call that carries it',
  },
  { figure: 'flood.of_baseline', atLeast: 1.5, why: 'a denied request is cheaper than a forwarded one' },
  { figure: 'flood.owner_calls', atMost: 5, why: 'a denied flood stays in the isolate' },
  {
    figure: 'hot.of_baseline',
    atLeast: 0.9,
    why: 'a hot key is spent in the isolate, at the price of a local rule',
  },
  { figure: 'hot.owner_calls', atMost: 20, why: 'the owner of a hot key is asked seldom' },
  { figure: 'hot.admitted_of_ideal', atLeast: 0.99, why: 'what is lent is used and not lost' },
  { figure: 'hot.admitted_of_ideal', atMost: 1, why: 'gateways that share a limit stay within it' },
  {
    figure: 'control.of_bare',
    atLeast: 0.95,
    why: 'telemetry, rules refresh and key directory go on beside requests',
  },
  { figure: 'publish.in_force', atMost: 2, why: 'a change reaches every gateway without a deploy' },
  { figure: 'publish.p99_of_before', atMost: 1.2, why: 'no request waits for rules' },
  { figure: 'publish.failed', atMost: 0, why: 'a change fails no request' },
  { figure: 'wait.local_p50', atMost: 1, why: 'the promise of added wait' },
  { figure: 'wait.local_p99', atMost: 2, why: 'the promise of added wait' },
  { figure: 'wait.strict_p50', atMost: 1, why: 'the promise of added wait, owner near' },
  {
    figure: 'regional.p99_of_single',
    atMost: 1.2,
    why: 'a request waits for its region alone, however far the owner of the whole',
  },
  { figure: 'core.of_map_get', atMost: 4, why: 'a decision costs no more than a few look-ups of its key' },
  { figure: 'table.bytes_per_key', atMost: 24, why: 'a million callers fit in an isolate' },
  { figure: 'table.of_map', atLeast: 1, why: 'the packed table is no slower than the obvious map' },
];

export function holds(bar: Bar, value: number): boolean {
  return 'atLeast' in bar ? value >= bar.atLeast : value <= bar.atMost;
}

export function barsOf(figure: string): readonly Bar[] {
  return BARS.filter((bar) => bar.figure === figure);
}

export function describeBar(bar: Bar): string {
  return 'atLeast' in bar ? `>= ${bar.atLeast}` : `<= ${bar.atMost}`;
}
