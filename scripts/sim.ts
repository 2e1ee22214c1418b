/**
 * `npm run sim`: scenarios of the limiter in a simulated world, and what each came to.
 *
 * The engine is the production one; clocks, network, isolates and owners are simulated, from one seed. A run in which an invariant or a
 * bound breaks exits 1 and prints its seed and the command that repeats it. Progress goes to stderr, the table to stdout.
 */
import { writeFile } from 'node:fs/promises';
import { command, runCommand, UsageError } from './command.ts';
import { DESIGNS, LOADS } from './sim/designs.ts';
import type { Figures } from './sim/measures.ts';
import type { Plant } from './sim/plant.ts';
import { PLANTS } from './sim/plants.ts';
import { missedBars, type Row, type Run, renderDesigns, renderTable, toJson } from './sim/report.ts';
import type { Scenario } from './sim/scenario.ts';
import { rowName, SCENARIOS } from './sim/scenarios.ts';
import { simulate } from './sim/simulation.ts';
import { SOAK } from './sim/soak.ts';

interface Flags {
  readonly seed: number;
  readonly seeds: number;
  readonly soak?: number;
  readonly designs?: boolean;
  readonly plant?: string;
  readonly json?: string;
  readonly check?: boolean;
}

await runCommand(async () => {
  const { names, flags } = parseFlags();
  const plant = plantNamed(flags.plant);
  if (flags.soak !== undefined) return soak(flags.soak, flags.seed, plant);
  if (flags.designs) return designs(flags);
  const rows: Row[] = [];
  for (const scenario of chosen(names)) rows.push(...(await rowsOf(scenario, flags, plant)));
  console.log(renderTable(rows));
  if (flags.json !== undefined) await writeFile(flags.json, toJson(rows));
  // A planted fault may break no promise and still cost the owner more than it should.
  const missed = flags.check || plant !== undefined ? rows.flatMap(missedBars) : [];
  for (const line of missed) console.error(`below the bar: ${line}`);
  const hasFailed = rows.some(({ runs }) => runs.some(({ violation }) => violation !== undefined));
  return hasFailed || missed.length > 0 ? 1 : 0;
});

async function rowsOf(scenario: Scenario, flags: Flags, plant: Plant | undefined): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const each of scenario.cases) {
    const name = rowName(scenario, each);
    console.error(`${name}: ${scenario.about}`);
    const runs: Run[] = [];
    for (let seed = flags.seed; seed < flags.seed + flags.seeds; seed += 1) {
      const result = await simulate(each, { seed, plant });
      runs.push({ seed, ...result });
      if (result.violation !== undefined) reportViolation(name, result.violation, scenario.name, seed, plant);
    }
    rows.push({ name, runs });
  }
  return rows;
}

/** This design and others, as a table of Markdown. */
async function designs({ seed: first, seeds }: Flags): Promise<number> {
  const rows = [];
  for (const design of DESIGNS) {
    console.error(design.name);
    for (const load of LOADS) {
      const runs: Figures[] = [];
      for (let seed = first; seed < first + seeds; seed += 1) runs.push(await design.run(seed, load));
      rows.push({ name: design.name, load, runs });
    }
  }
  console.log(renderDesigns(rows));
  return 0;
}

/** Small worlds at random, one a seed; the first that fails ends it. */
async function soak(count: number, firstSeed: number, plant: Plant | undefined): Promise<number> {
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const { violation } = await simulate(SOAK, { seed, plant });
    if (violation !== undefined) {
      reportViolation('soak', violation, '--soak 1', seed, plant);
      return 1;
    }
    if ((seed - firstSeed) % 50 === 49) console.error(`soak: ${seed - firstSeed + 1} of ${count} seeds`);
  }
  console.log(`soak: ${count} seeds from ${firstSeed}, no violation`);
  return 0;
}

function reportViolation(
  name: string,
  violation: string,
  argument: string,
  seed: number,
  plant: Plant | undefined,
): void {
  const planted = plant === undefined ? '' : ` --plant ${plant.name}`;
  console.error(`  FAILED ${name} (seed ${seed}) ${violation}`);
  console.error(`  repeat: npm run sim -- ${argument} --seed ${seed}${planted}`);
}

function parseFlags(): { names: readonly string[]; flags: Flags } {
  const scenarios = SCENARIOS.map(({ name, about }) => `  ${name.padEnd(16)}${about}`).join('\n');
  const plants = PLANTS.map(({ name, about }) => `  ${name.padEnd(24)}${about}`).join('\n');
  const program = command('npm run sim --', 'Runs scenarios of the limiter in a simulated world.')
    .argument('[scenario...]', 'which; all unless named')
    .option('--seed <n>', 'the first seed', wholeNumber, 1)
    .option('--seeds <n>', 'how many seeds: the table shows medians, and the worst', wholeNumber, 1)
    .option('--soak <n>', 'in place of scenarios, so many random worlds with random faults', wholeNumber)
    .option('--designs', 'in place of scenarios: this design and others on the same traffic')
    .option('--plant <name>', 'build in a known fault, which must be found: the run must exit 1')
    .option('--json <file>', 'also write all figures as JSON')
    .option('--check', 'exit 1 when a median misses its bar')
    .addHelpText('after', `\nScenarios:\n${scenarios}\n\nPlants:\n${plants}`)
    .parse();
  return { names: program.args, flags: program.opts<Flags>() };
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new UsageError(`${text} is not a whole number above 0`);
  return value;
}

function chosen(names: readonly string[]): readonly Scenario[] {
  if (names.length === 0) return SCENARIOS;
  return names.map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === name);
    if (found !== undefined) return found;
    throw new UsageError(
      `there is no scenario ${name}; there are ${SCENARIOS.map((scenario) => scenario.name).join(', ')}`,
    );
  });
}

function plantNamed(name: string | undefined): Plant | undefined {
  if (name === undefined) return undefined;
  const found = PLANTS.find((plant) => plant.name === name);
  if (found !== undefined) return found;
  throw new UsageError(
    `there is no plant ${name}; there are ${PLANTS.map((plant) => plant.name).join(', ')}`,
  );
}
