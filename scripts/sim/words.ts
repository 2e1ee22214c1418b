/** What a message or a verdict says, in words. */
import type { OwnerCall, OwnerReply } from '../../src/engine/messages.ts';
import type { Verdict } from '../../src/engine/verdict.ts';

export function describeCall({ question, debts = [], version }: OwnerCall): string {
  const rules = version.activation === 1 ? '' : ` under activation ${version.activation}`;
  const owed = debts.reduce((sum, { units }) => sum + units, 0);
  const telling = owed === 0 ? '' : `, and tells of ${units(owed)} admitted without it`;
  return `${describeQuestion(question)}${rules}${telling}`;
}

function describeQuestion(question: OwnerCall['question']): string {
  if (question === undefined) return 'sends its owner a word, and no question';
  if (question.lease?.isFinal) return 'gives its lease back';
  if (question.cost === 0) return 'asks its owner to renew the lease';
  return question.lease === undefined ? 'asks its owner' : 'asks its owner, and for a lease';
}

export function describeReply({ debts = [] }: OwnerCall, { answer, version }: OwnerReply): string {
  const said: string[] = [];
  const owed = debts.reduce((sum, { units }) => sum + units, 0);
  if (owed > 0) said.push(`charges the ${units(owed)}`);
  if (answer !== undefined) {
    const remaining = Math.min(...answer.counters.map((counter) => counter.remaining));
    said.push(`decides "${answer.outcome}", ${remaining} left`);
    if (answer.lease !== undefined) {
      const { lease } = answer;
      said.push(
        `lends ${units(lease.units)} and ${rounded(lease.unitsPerMs * 1_000)} a second for ${rounded(lease.lifeMs)} ms`,
      );
    }
  }
  if (version.activation > 1) said.push(`knows activation ${version.activation}`);
  return said.length === 0 ? 'answers' : said.join('; ');
}

export function describeVerdict({ outcome, retryAfterMs }: Verdict): string {
  return outcome === 'allowed'
    ? 'answers "allowed"'
    : `answers "${outcome}", to be tried again in ${rounded(retryAfterMs)} ms`;
}

export function units(amount: number): string {
  return `${rounded(amount)} unit${amount === 1 ? '' : 's'}`;
}

export function rounded(value: number): number {
  return Number(value.toFixed(1));
}
