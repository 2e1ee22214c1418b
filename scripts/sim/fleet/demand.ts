/**
 * How often each of millions of keys is asked for, by Zipf's law: the k-th most popular has 1/k^exponent of the first one's requests.
 *
 * Everything is a formula of the rank, so that no list of keys is ever made. Sums over ranks are exact for the first of them, and
 * by the Euler-Maclaurin formula beyond, which is right to ten digits there.
 */

export interface Demand {
  readonly keys: number;
  /** Of all keys together. */
  readonly requestsPerSecond: number;
  readonly exponent: number;
}

/** Ranks from the most popular, 1, to `keys`; both ends belong to it. */
export interface Ranks {
  readonly from: number;
  readonly to: number;
}

/** Beyond as many ranks the formula is right to more digits than a sum of floats. */
const SUMMED_ONE_BY_ONE = 64;

/** Between the flattest and the steepest demand that is looked at. */
const EXPONENTS = { low: 0.1, high: 2 };

/** Halving the range so often leaves nothing that a float could tell. */
const HALVINGS = 50;

export function rateOf({ keys, requestsPerSecond, exponent }: Demand, rank: number): number {
  return (requestsPerSecond * rank ** -exponent) / powerSum(keys, exponent);
}

/** Requests a second of all keys of these ranks. */
export function rateOfRanks(demand: Demand, { from, to }: Ranks): number {
  const { keys, requestsPerSecond, exponent } = demand;
  const part = powerSum(to, exponent) - powerSum(from - 1, exponent);
  return (requestsPerSecond * part) / powerSum(keys, exponent);
}

/** The part of all requests that is above a limit of so many a second for each key. */
export function shareAbove(demand: Demand, limitPerSecond: number): number {
  const last = lastRankAbove(demand, limitPerSecond);
  if (last === 0) return 0;
  return (rateOfRanks(demand, { from: 1, to: last }) - last * limitPerSecond) / demand.requestsPerSecond;
}

/** How many keys are asked for more often than so many times a second. */
export function lastRankAbove(demand: Demand, perSecond: number): number {
  const times = rateOf(demand, 1) / perSecond;
  return times <= 1 ? 0 : Math.min(demand.keys, Math.floor(times ** (1 / demand.exponent)));
}

/** The exponent at which a limit of so many requests a second for each key is exceeded by such a part of all requests. */
export function exponentFor(
  demand: Omit<Demand, 'exponent'>,
  { limitPerSecond, share }: { readonly limitPerSecond: number; readonly share: number },
): number {
  let { low, high } = EXPONENTS;
  for (let count = 0; count < HALVINGS; count += 1) {
    const exponent = (low + high) / 2;
    if (shareAbove({ ...demand, exponent }, limitPerSecond) < share) low = exponent;
    else high = exponent;
  }
  return (low + high) / 2;
}

/** 1 + 2^-exponent + ... + count^-exponent. */
function powerSum(count: number, exponent: number): number {
  let sum = 0;
  for (let rank = 1; rank <= Math.min(count, SUMMED_ONE_BY_ONE); rank += 1) sum += rank ** -exponent;
  return count <= SUMMED_ONE_BY_ONE ? sum : sum + tailSum(count, exponent);
}

/** The terms after the last that is summed one by one. */
function tailSum(count: number, exponent: number): number {
  const first = SUMMED_ONE_BY_ONE;
  const integral =
    exponent === 1
      ? Math.log(count / first)
      : (count ** (1 - exponent) - first ** (1 - exponent)) / (1 - exponent);
  const ends = (count ** -exponent - first ** -exponent) / 2;
  const slopes = (exponent * (first ** (-exponent - 1) - count ** (-exponent - 1))) / 12;
  return integral + ends + slopes;
}
