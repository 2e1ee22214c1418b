/** Sums merged by maximum: whatever becomes of the messages, the last one that arrives says everything. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Total } from '../../src/engine/messages.ts';
import { MiddleAccount } from '../../src/engine/middle-account.ts';

const heard = (owed: number, { returned = 0, lent = 0 } = {}) => ({ owed, returned, lent });

describe('an answer', () => {
  test('says what was heard, once; repeated, it says nothing new', () => {
    const account = new MiddleAccount(7);
    account.owe(5);
    account.giveBack(3);
    for (let time = 0; time < 3; time += 1) account.hear(heard(5, { returned: 3 }));
    expect(account.owed(0)).toEqual({ units: 5, heard: 5 });
    expect(account.returned).toEqual({ units: 3, heard: 3 });
  });

  test('brings units once, however often it comes, and none that were overtaken', () => {
    const account = new MiddleAccount(7);
    expect(account.hear(heard(0, { lent: 10 })).units).toBe(10);
    expect(account.hear(heard(0, { lent: 10 })).units).toBe(0);
    expect(account.hear(heard(0, { lent: 25 })).units).toBe(15);
    expect(account.hear(heard(0, { lent: 10 })).units).toBe(0);
    expect(account.lent).toBe(25);
  });

  test('that was overtaken does not unsay what was heard', () => {
    const account = new MiddleAccount(7);
    account.owe(9);
    account.hear(heard(9));
    account.hear(heard(4));
    expect(account.owed(0)).toEqual({ units: 9, heard: 9 });
  });

  test('that takes what was missing for owed makes it so', () => {
    const account = new MiddleAccount(7);
    expect(account.owed(6)).toEqual({ units: 6, heard: 0 });
    expect(account.hear(heard(6)).owed).toBe(6);
    // It is missing no more, since it is owed for good.
    expect(account.owed(0)).toEqual({ units: 6, heard: 6 });
    expect(account.hear(heard(6)).owed).toBe(0);
  });
});

describe('a new epoch', () => {
  test('carries what was not heard of, and nothing else', () => {
    const account = new MiddleAccount(7);
    account.owe(9);
    account.giveBack(2);
    account.hear(heard(4, { lent: 50 }));
    account.begin(8);
    expect(account.epoch).toBe(8);
    expect(account.owed(0)).toEqual({ units: 5, heard: 0 });
    expect(account.returned).toEqual({ units: 0, heard: 0 });
    expect(account.lent).toBe(0);
  });

  test('begins at nothing when all was heard', () => {
    const account = new MiddleAccount(7);
    account.owe(9);
    account.hear(heard(9));
    account.begin(8);
    expect(account.owed(0)).toEqual({ units: 0, heard: 0 });
  });
});

test('what was stored is what is restored, whatever epoch the new life would have begun with', () => {
  const account = new MiddleAccount(7);
  account.owe(9);
  account.giveBack(2);
  account.hear(heard(4, { returned: 1, lent: 50 }));
  const again = new MiddleAccount(99, JSON.parse(JSON.stringify(account.stored())));
  expect(again.stored()).toEqual(account.stored());
  expect(again.epoch).toBe(7);
});

describe('property: messages that are lost, repeated and overtaken', () => {
  type Step =
    | { readonly kind: 'owe' | 'give back' | 'lend' | 'miss' | 'forgive'; readonly units: number }
    | { readonly kind: 'report' | 'answer'; readonly at: number };

  const units = fc.integer({ min: 1, max: 20 });
  const at = fc.nat({ max: 30 });
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constantFrom('owe', 'give back', 'lend', 'miss', 'forgive'), units }),
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('report', 'answer'), at }) },
  );

  test('in the end the root has charged what is owed, and the units that came are those that were lent', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const account = new MiddleAccount(1);
        const root = { owed: 0, returned: 0, lent: 0 };
        let [owed, missing, came] = [0, 0, 0];
        /** Everything that was ever said may come again, at any time. */
        const reports: { owed: Total; returned: Total }[] = [];
        const answers: { owed: number; returned: number; lent: number }[] = [];
        const reportArrives = (report: (typeof reports)[number]) => {
          root.owed = Math.max(root.owed, report.owed.units);
          root.returned = Math.max(root.returned, report.returned.units);
          answers.push({ ...root });
        };
        const answerArrives = (answer: (typeof answers)[number]) => {
          const told = account.hear(answer);
          came += told.units;
          owed += told.owed;
          missing = Math.max(0, missing - told.owed);
        };
        for (const each of steps) {
          if (each.kind === 'owe') {
            account.owe(each.units);
            owed += each.units;
          }
          if (each.kind === 'give back') account.giveBack(each.units);
          if (each.kind === 'lend') root.lent += each.units;
          if (each.kind === 'miss') missing += each.units;
          if (each.kind === 'forgive') missing = Math.max(0, missing - each.units);
          reports.push({ owed: account.owed(missing), returned: account.returned });
          if (each.kind === 'report') reportArrives(reports[each.at % reports.length]!);
          if (each.kind === 'answer' && answers.length > 0) answerArrives(answers[each.at % answers.length]!);
        }
        reportArrives({ owed: account.owed(missing), returned: account.returned });
        answerArrives(answers.at(-1)!);
        expect(came).toBe(root.lent);
        expect(root.owed).toBe(owed + missing);
        expect(account.owed(missing)).toEqual({ units: root.owed, heard: root.owed });
        expect(account.returned.units).toBe(root.returned);
      }),
      { numRuns: 500 },
    );
  });
});
