/**
 * `npm run bench`: what the limiter costs, each figure against a baseline of the same run.
 *
 * Five rounds, or three of what hardly varies, that alternate between the contenders; the table shows the median and the spread.
 * Progress goes to stderr, the table to stdout. With `--check`, a median that misses its bar (`bench/bars.ts`) exits 1.
 */
import { writeFile } from 'node:fs/promises';
import type { Figure, Measurement } from './bench/figure.ts';
import { control } from './bench/measurements/control.ts';
import { hot } from './bench/measurements/hot.ts';
import { core, table } from './bench/measurements/memory.ts';
import { peers } from './bench/measurements/peers.ts';
import { regional } from './bench/measurements/regional.ts';
import { flood, local, strict } from './bench/measurements/throughput.ts';
import { wait } from './bench/measurements/wait.ts';
import { renderTable, rowsOf, toJson } from './bench/report.ts';
import { command, runCommand, UsageError } from './command.ts';
import { expectWritable } from './places.ts';

const MEASUREMENTS: readonly Measurement[] = [
  core,
  table,
  local,
  strict,
  flood,
  wait,
  regional,
  hot,
  control,
  peers,
];

interface Flags {
  readonly only?: string;
  readonly json?: string;
  readonly check?: boolean;
}

await runCommand(async () => {
  const flags = parseFlags();
  if (flags.json !== undefined) await expectWritable('--json', flags.json);
  const figures: Figure[] = [];
  for (const { name, about, run } of chosen(flags.only)) {
    console.error(`${name}: ${about}`);
    figures.push(...(await run((line) => console.error(`  ${line}`))));
  }
  const rows = rowsOf(figures);
  console.log(renderTable(rows));
  if (flags.json !== undefined) await writeFile(flags.json, toJson(rows));
  const missed = rows.filter((row) => row.holds === false).map((row) => row.name);
  if (missed.length > 0) console.error(`below the bar: ${missed.join(', ')}`);
  return flags.check && missed.length > 0 ? 1 : 0;
});

function parseFlags(): Flags {
  const list = MEASUREMENTS.map(({ name, about }) => `  ${name.padEnd(8)}${about}`).join('\n');
  return command('npm run bench --', 'Measures the limiter against baselines of the same run.')
    .option('--only <name>', 'one measurement')
    .option('--json <file>', 'also write the figures, round by round, as JSON')
    .option('--check', 'exit 1 when a median misses its bar')
    .addHelpText('after', `\nMeasurements:\n${list}`)
    .parse()
    .opts<Flags>();
}

function chosen(only: string | undefined): readonly Measurement[] {
  if (only === undefined) return MEASUREMENTS;
  const found = MEASUREMENTS.filter(({ name }) => name === only);
  if (found.length > 0) return found;
  const names = MEASUREMENTS.map(({ name }) => name).join(', ');
  throw new UsageError(`there is no measurement ${only}; there are ${names}`);
}
