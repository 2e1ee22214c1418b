/**
 * `npm run sim`: scenarios of the limiter in a simulated world, and what each came to.
 *
 * The engine is the production one; clocks, network, isolates and owners are simulated, from one seed. A run in which an invariant or a
 * bound breaks exits 1 and prints its seed and the command that repeats it. Progress goes to stderr, the table to stdout.
 */
import { writeFile } from 'node:fs/promises';
import { command, runCommand, UsageError } from './command.ts';
import { expectWritable } from './places.ts';
import { DESIGNS, LOADS } from './sim/designs.ts';
import { renderFleet } from './sim/fleet/report.ts';
import { walk } from './sim/journey.ts';
import { excesses, JOURNEYS, renderJourney } from './sim/journeys.ts';
import type { Figures } from './sim/measures.ts';
import type { Plant } from './sim/plant.ts';
import { PLANTS } from './sim/plants.ts';
import {
  isBroken,
  missedBars,
  type Row,
  type Run,
  renderDesigns,
  renderFinding,
  renderTable,
  toJson,
} from './sim/report.ts';
import type { Scenario } from './sim/scenario.ts';
import { FLEET, type FleetRow, runFleet, SIZINGS } from './sim/scenarios/fleet.ts';
import { rowName, SCENARIOS } from './sim/scenarios.ts';
import { simulate } from './sim/simulation.ts';
import { SOAK } from './sim/soak.ts';

interface Flags {
  readonly seed: number;
  readonly seeds: number;
  readonly soak?: number;
  readonly designs?: boolean;
  readonly journey?: string | true;
  readonly plant?: string;
  readonly json?: string;
  readonly check?: boolean;
}

await runCommand(async () => {
  const { names, flags } = parseFlags();
  const plant = plantNamed(flags.plant);
  if (flags.json !== undefined) await expectWritable('--json', flags.json);
  if (flags.soak !== undefined) return soak(flags.soak, flags.seed, plant);
  if (flags.designs) return designs(flags);
  if (flags.journey !== undefined) return journeys(flags, names, plant);
  const rows: Row[] = [];
  const findings: string[] = [];
  const { scenarios, isFleetChosen } = chosen(names);
  for (const scenario of scenarios) {
    const own = await rowsOf(scenario, flags, plant);
    rows.push(...own);
    findings.push(...renderFinding(scenario, own));
  }
  if (scenarios.length > 0) console.log([renderTable(rows), ...findings].join('\n'));
  const fleet = isFleetChosen ? await fleetRows(flags, plant) : [];
  if (isFleetChosen) console.log(`${scenarios.length > 0 ? '\n' : ''}${renderFleet(fleet)}`);
  if (flags.json !== undefined) await writeFile(flags.json, toJson(rows, fleet));
  // A planted fault may break no promise and still cost the owner more than it should.
  const missed = flags.check || plant !== undefined ? rows.flatMap(missedBars) : [];
  for (const line of missed) console.error(`below the bar: ${line}`);
  if (missed.length > 0) console.error(`  repeat: npm run sim -- ${argumentsFrom(names, flags)}`);
  const hasFailed = rows.some(isBroken) || fleet.some(({ estimate }) => estimate.violations.length > 0);
  return hasFailed || missed.length > 0 ? 1 : 0;
});

/** Under one seed, which is enough where so many keys are added up. */
async function fleetRows({ seed }: Flags, plant: Plant | undefined): Promise<readonly FleetRow[]> {
  const rows: FleetRow[] = [];
  for (const sizing of SIZINGS) {
    console.error(`${FLEET.name} ${sizing.label}: ${sizing.about}`);
    const row = await runFleet(sizing, { seed, plant });
    for (const violation of row.estimate.violations)
      reportViolation(`${FLEET.name} ${sizing.label}`, violation, FLEET.name, seed, plant);
    rows.push(row);
  }
  return rows;
}

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
    rows.push({ name, runs, isKnownToBreak: each.isKnownToBreak });
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

/** One request hop by hop, against the budgets of its hops. */
async function journeys(
  { journey: first, seed }: Flags,
  others: readonly string[],
  plant: Plant | undefined,
): Promise<number> {
  const names = first === true || first === undefined ? others : [first, ...others];
  const chosenOnes = names.length === 0 ? JOURNEYS : names.map((name) => named('journey', JOURNEYS, name));
  let hasFailed = false;
  for (const journey of chosenOnes) {
    const walked = await walk(journey, { seed, plant });
    console.log(`${renderJourney(journey, seed, walked)}\n`);
    const over = excesses(journey, walked);
    for (const line of over) console.error(`over budget: ${line}`);
    if (walked.violation !== undefined)
      reportViolation(journey.name, walked.violation, `--journey ${journey.name}`, seed, plant);
    hasFailed ||= over.length > 0 || walked.violation !== undefined;
  }
  return hasFailed ? 1 : 0;
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

function argumentsFrom(names: readonly string[], { seed, seeds, plant, check }: Flags): string {
  const planted = plant === undefined ? [] : [`--plant ${plant}`];
  return [...names, `--seed ${seed} --seeds ${seeds}`, ...planted, ...(check ? ['--check'] : [])].join(' ');
}

function parseFlags(): { names: readonly string[]; flags: Flags } {
  const width = Math.max(...[...SCENARIOS, ...JOURNEYS, ...PLANTS].map(({ name }) => name.length)) + 2;
  const list = (all: readonly Named[]) =>
    all.map(({ name, about }) => `  ${name.padEnd(width)}${about}`).join('\n');
  const lists = [
    `Scenarios:\n${list([...SCENARIOS, FLEET])}`,
    `Journeys:\n${list(JOURNEYS)}`,
    `Plants:\n${list(PLANTS)}`,
  ];
  const program = command('npm run sim --', 'Runs scenarios of the limiter in a simulated world.')
    .argument('[scenario...]', 'which; all unless named')
    .option('--seed <n>', 'the first seed', wholeNumber, 1)
    .option('--seeds <n>', 'how many seeds: the table shows medians, and the worst', wholeNumber, 1)
    .option('--soak <n>', 'in place of scenarios, so many random worlds with random faults', wholeNumber)
    .option('--journey [name]', 'in place of scenarios: one request hop by hop; all journeys unless named')
    .option('--designs', 'in place of scenarios: this design and others on the same traffic')
    .option('--plant <name>', 'build in a known fault, which must be found: the run must exit 1')
    .option('--json <file>', 'also write all figures as JSON')
    .option('--check', 'exit 1 when a median misses its bar')
    .addHelpText('after', `\n${lists.join('\n\n')}`)
    .parse();
  return { names: program.args, flags: program.opts<Flags>() };
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new UsageError(`${text} is not a whole number above 0`);
  return value;
}

function chosen(names: readonly string[]): {
  readonly scenarios: readonly Scenario[];
  readonly isFleetChosen: boolean;
} {
  if (names.length === 0) return { scenarios: SCENARIOS, isFleetChosen: true };
  const all = [...SCENARIOS, FLEET];
  const found = names.map((name) => named('scenario', all, name));
  return {
    scenarios: found.filter((each): each is Scenario => each !== FLEET),
    isFleetChosen: found.includes(FLEET),
  };
}

function plantNamed(name: string | undefined): Plant | undefined {
  return name === undefined ? undefined : named('plant', PLANTS, name);
}

interface Named {
  readonly name: string;
  readonly about: string;
}

function named<Thing extends Named>(kind: string, all: readonly Thing[], name: string): Thing {
  const found = all.find((each) => each.name === name);
  if (found !== undefined) return found;
  throw new UsageError(`there is no ${kind} ${name}; there are ${all.map((each) => each.name).join(', ')}`);
}
