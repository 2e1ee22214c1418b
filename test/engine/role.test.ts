import { describe, expect, test } from 'vitest';
import { roleOf, rootNameOf } from '../../src/engine/role.ts';

const EPOCH = 1_700_000_000_000;

describe('an owner by its name', () => {
  test('of a region is a middle owner, which the owner of the whole has by its full name', () => {
    const { middle, root } = roleOf('region/weur/own/anne', EPOCH);
    expect(root).toBeUndefined();
    expect(middle).toMatchObject({ name: 'region/weur/own/anne', epoch: EPOCH, startCredit: 0.25 });
    expect(middle!.rootIdOf('region/weur/1:a')).toBe('1:a');
    expect(middle!.rootIdOf('1:a')).toBe('1:a');
  });

  test('of a slice is a middle owner that begins with what it was lent, and with no credit', () => {
    const { middle, root } = roleOf('slice/3/32/own/anne', EPOCH);
    expect(root).toBeUndefined();
    expect(middle).toMatchObject({ name: 'slice/3/32/own/anne', startCredit: 0 });
    expect(middle!.rootIdOf('1:a')).toBe('1:a');
  });

  test.each([
    'own/anne',
    'shared/7',
    'part/weur/own/anne',
    'region/nowhere/own/anne',
    'slice/999/1000/own/anne',
    'slice/3/own/anne',
    '',
  ])('%o is a root', (name) => {
    const { middle, root } = roleOf(name, EPOCH);
    expect(middle).toBeUndefined();
    expect(root).toBeDefined();
  });
});

describe('a root', () => {
  const isMiddle = (name: string) => roleOf('own/anne', EPOCH).root!.isMiddle(name);

  test.each(['region/weur/own/anne', 'region/oc/own/anne', 'slice/0/2/own/anne', 'slice/31/32/own/anne'])(
    'lends to %s',
    (name) => expect(isMiddle(name)).toBe(true),
  );

  test.each([
    'own/anne',
    'anne',
    'region/weur/own/bert',
    'region/atlantis/own/anne',
    'region/weur/',
    'region/weur/own/anne/',
    'region/weur/region/oc/own/anne',
    'slice/32/32/own/anne',
    'slice/2/2/own/anne',
    'slice/1/33/own/anne',
    'slice/1/own/anne',
    'slice/-1/2/own/anne',
    'slice/1/2/own/bert',
    'part/weur/own/anne',
    'isolate-7',
    '',
  ])('does not lend to %o', (name) => expect(isMiddle(name)).toBe(false));

  test('is split when it is one caller’s own, into slices of its own name; one of many shared ones never is', () => {
    const { slices } = roleOf('own/anne', EPOCH).root!;
    expect(new Set(slices!(7)).size).toBe(7);
    for (const slice of slices!(7)) expect(rootNameOf(slice)).toBe('own/anne');
    expect(roleOf('shared/7', EPOCH).root!.slices).toBeUndefined();
  });
});

test('only middle owners have a root', () => {
  expect(rootNameOf('own/anne')).toBeUndefined();
  expect(rootNameOf('part/weur/own/anne')).toBeUndefined();
  expect(rootNameOf('region/weur/own/anne')).toBe('own/anne');
  expect(rootNameOf('slice/3/32/own/anne')).toBe('own/anne');
});
