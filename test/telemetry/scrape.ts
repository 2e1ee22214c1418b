/** What a hub publishes, as a scraper understands it. */
import parse from 'parse-prometheus-text-format';

export interface Scraped {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * Every sample of the text. The parser would take histograms that differ by label for one, so it is told that they are of no type and
 * reads their lines as they are.
 */
export function scrape(text: string): Scraped[] {
  if (!text.endsWith('\n')) throw new Error('the last line of the text format has to end as well');
  return parse(text.replace(/^(# TYPE \S+) histogram$/gm, '$1 untyped')).flatMap(({ name, metrics }) =>
    metrics.map(({ labels = {}, value }) => ({ name, labels, value: numberOf(value) })),
  );
}

/** The value of the one sample with this name whose labels include these; a second one is a fault of the text. */
export function sampled(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const found = scrape(text).filter(
    (sample) =>
      sample.name === `edge_limiter_${name}` &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  if (found.length > 1) throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}`);
  return found[0]?.value;
}

/** The sum over all samples with this name. */
export function totalOf(text: string, name: string): number {
  return scrape(text)
    .filter((sample) => sample.name === `edge_limiter_${name}`)
    .reduce((total, { value }) => total + value, 0);
}

function numberOf(value: string): number {
  if (value === '+Inf') return Number.POSITIVE_INFINITY;
  const number = Number(value);
  if (value === '' || Number.isNaN(number)) throw new Error(`not a number: ${value}`);
  return number;
}
