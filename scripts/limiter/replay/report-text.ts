/** What a replay came to, for people. */
import { countText, durationText, plainText, plural } from '../text.ts';
import type { CallerCount, Moved, ReplayReport, SideReport } from './tally.ts';

type Row = readonly [title: string, one: string, two: string];

export function formatReport(report: ReplayReport): string {
  const { rulesets, gained, lost, notes } = report;
  const sections = [
    [headline(report)],
    rulesets.map(({ rules, domain }, at) => `${nameOf(at)}: ${rules} (domain ${domain})`),
    tableOf([...totalRows(report), ...policyRows(report)]),
    movedLines('gain', 'denied under A, admitted under B', gained),
    movedLines('lose', 'admitted under A, denied under B', lost),
    notes.map((note) => `note: ${note}`),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

function nameOf(at: number): string {
  return at === 0 ? 'A' : 'B';
}

function headline({ requests, fromMs, toMs }: ReplayReport): string {
  if (fromMs === undefined || toMs === undefined) return 'the log holds no requests';
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString());
  return `${plural(requests, 'request')} from ${from} to ${to} (${durationText(toMs - fromMs)})`;
}

function totalRows({ rulesets }: ReplayReport): readonly Row[] {
  const row = (title: string, count: (side: SideReport) => number): Row => {
    const [a, b] = rulesets.map((side) => countText(count(side)));
    return [title, a!, b!];
  };
  const ifAny = (title: string, count: (side: SideReport) => number): readonly Row[] =>
    rulesets.some((side) => count(side) > 0) ? [row(title, count)] : [];
  return [
    ['', 'A', 'B'],
    row('admitted', ({ admitted }) => admitted),
    ...ifAny('  held back first', ({ delayed }) => delayed),
    ...ifAny('  matched by no rule', ({ unmatched }) => unmatched),
    row('denied', ({ denied }) => denied),
    ...ifAny('impossible (cost above a limit)', ({ impossible }) => impossible),
  ];
}

/** A request that several policies refused is in the row of each. */
function policyRows({ policies }: ReplayReport): readonly Row[] {
  const rows = policies
    .filter(({ refused }) => refused.some((count) => count > 0))
    .map(({ policy, shadow, refused: [a, b] }): Row => {
      const title = shadow ? `in shadow by ${JSON.stringify(policy)}` : `by ${JSON.stringify(policy)}`;
      return [title, countText(a), countText(b)];
    });
  return rows.length === 0 ? [] : [['', '', ''], ['refused', 'A', 'B'], ...rows];
}

function tableOf(rows: readonly Row[]): readonly string[] {
  const widths = [0, 1, 2].map((at) => Math.max(...rows.map((row) => row[at]!.length)));
  return rows.map(([title, one, two]) => {
    const line = `${title.padEnd(widths[0]!)}  ${one.padStart(widths[1]!)}  ${two.padStart(widths[2]!)}`;
    return line.trimEnd();
  });
}

function movedLines(
  verb: string,
  meaning: string,
  { requests, callers, top, others }: Moved,
): readonly string[] {
  if (requests === 0) return [`nobody would ${verb}`];
  const shown = top.reduce((sum, caller) => sum + caller.requests, 0);
  const left = requests - shown - others;
  const width = countText(top[0]?.requests ?? 0).length;
  return [
    `would ${verb}: ${plural(requests, 'request')} (${meaning})`,
    ...top.map((caller) => `  ${countText(caller.requests).padStart(width)}  ${callerText(caller)}`),
    ...(left > 0 ? [`  and ${countText(left)} of ${plural(callers - top.length, 'more caller')}`] : []),
    ...(others > 0 ? [`  and ${countText(others)} of callers beyond those that are told apart`] : []),
  ];
}

function callerText({ attribute, value }: CallerCount): string {
  return `${attribute}=${plainText(value)}`;
}
