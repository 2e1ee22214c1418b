/** The few statistics that a measurement needs. */

/** The value below which the share `at` (0 to 1) of the values lies, by nearest rank. */
export function quantile(values: readonly number[], at: number): number {
  if (values.length === 0) throw new Error('no values to take a quantile of');
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(at * sorted.length) - 1)]!;
}

export function median(values: readonly number[]): number {
  return (
    (quantile(values, 0.5) +
      -quantile(
        values.map((value) => -value),
        0.5,
      )) /
    2
  );
}

export function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
