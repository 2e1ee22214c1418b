/** All journeys by name, and how they are told. */
import { type Hop, isOver, type Journey, type Walked } from './journey.ts';
import { ALLOWED } from './journeys/allowed.ts';
import { DENIED } from './journeys/denied.ts';
import { OUTAGE } from './journeys/outage.ts';
import { RULE_CHANGE } from './journeys/rule-change.ts';

export const JOURNEYS: readonly Journey[] = [ALLOWED, DENIED, OUTAGE, RULE_CHANGE];

const HEADER = ['at ms', 'who', 'source', 'took', 'budget', 'what'];
const IS_NUMBER = [true, false, false, true, true, false];

export function renderJourney({ name, about }: Journey, seed: number, { legs }: Walked): string {
  const cells = legs.map(({ hops }) => hops.map(cellsOf));
  const widths = HEADER.map((title, at) =>
    Math.max(title.length, ...cells.flat().map((hop) => hop[at]!.length)),
  );
  const render = (hop: readonly string[]) =>
    `    ${hop.map((cell, at) => padded(cell, at, widths[at]!)).join('  ')}`.trimEnd();
  const lines = legs.flatMap(({ title }, at) => [`  ${title}`, ...cells[at]!.map(render)]);
  return [`${name} (seed ${seed}): ${about}`, render(HEADER), ...lines].join('\n');
}

/** Hops above their budget, in words. */
export function excesses({ name }: Journey, { legs }: Walked): readonly string[] {
  return legs.flatMap(({ title, hops }) =>
    hops
      .filter(isOver)
      .map(
        ({ atMs, who, what, took }) =>
          `${name}, ${title}: at ${atMs.toFixed(1)} ms ${who} ${what}: took ${took!.ms.toFixed(1)} ms of ${took!.budgetMs}`,
      ),
  );
}

function cellsOf(hop: Hop): readonly string[] {
  const { atMs, who, what, source = '', took } = hop;
  const over = isOver(hop) ? 'OVER BUDGET: ' : '';
  return [
    atMs.toFixed(1),
    who,
    source,
    took?.ms.toFixed(1) ?? '',
    took ? String(took.budgetMs) : '',
    over + what,
  ];
}

function padded(cell: string, at: number, width: number): string {
  if (at === HEADER.length - 1) return cell;
  return IS_NUMBER[at] ? cell.padStart(width) : cell.padEnd(width);
}
