/** Equal addresses are one caller however they are written; unlike ones never are (E11). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countedAddress, isInNetwork, parseAddress, parseNetwork } from '../../src/policy/address.ts';

const counted = (text: string, prefixBits = 64): string | undefined => {
  const address = parseAddress(text);
  return address === undefined ? undefined : countedAddress(address, prefixBits);
};

describe('what an address is counted as (E11)', () => {
  test.each([
    ['1.2.3.4', '1.2.3.4'],
    [' 1.2.3.4 ', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:102:304', '1.2.3.4'],
    ['::FFFF:0102:0304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:1.2.3.4%eth0', '1.2.3.4'],
    ['64:ff9b::102:304', '1.2.3.4'],
    ['64:ff9b::1.2.3.4', '1.2.3.4'],
    ['::ffff:5.6.7.8', '5.6.7.8'],
    ['2001:db8::1.2.3.4', '2001:db8:0:0:0:0:0:0/64'],
    ['2001:DB8:0000:0000:1::', '2001:db8:0:0:0:0:0:0/64'],
    ['2001:db8:0:1::1', '2001:db8:0:1:0:0:0:0/64'],
    ['64:ff9b:1::1', '64:ff9b:1:0:0:0:0:0/64'],
    ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:0/64'],
    ['::1', '0:0:0:0:0:0:0:0/64'],
  ])('%s is %s', (text, expected) => {
    expect(counted(text)).toBe(expected);
  });

  test.each([
    [48, '2001:db8:1:0:0:0:0:0/48'],
    [57, '2001:db8:1:280:0:0:0:0/57'],
    [128, '2001:db8:1:2ff:0:0:0:1'],
  ])('the prefix may be %i bits', (prefixBits, expected) => {
    expect(counted('2001:db8:1:2ff::1', prefixBits)).toBe(expected);
  });

  test.each([
    '',
    'localhost',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '010.0.0.1',
    '0x7f.1',
    '1',
    '1:2',
    ':::',
    '%',
    '[::1]',
    '1.2.3.4:80',
  ])('%j is none', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });
});

describe('networks', () => {
  test.each([
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['64:ff9b::10.0.0.0/104', '10.0.0.0/8'],
    ['2001:DB8::1/32', '2001:db8:0:0:0:0:0:0/32'],
    ['10.0.0.0/33', undefined],
    ['2001:db8::/129', undefined],
    ['::ffff:10.0.0.0/90', undefined],
    ['10.0.0.0', undefined],
    ['10.0.0.0/', undefined],
    ['/8', undefined],
  ])('%s is %s', (text, expected) => {
    expect(parseNetwork(text)?.text).toBe(expected);
  });

  test.each([
    ['10.255.0.1', '10.0.0.0/8', true],
    ['11.0.0.1', '10.0.0.0/8', false],
    ['192.0.2.127', '192.0.2.0/25', true],
    ['192.0.2.128', '192.0.2.0/25', false],
    ['::ffff:10.0.0.1', '10.0.0.0/8', true],
    ['1.2.3.4', '::/0', false],
    ['2001:db8::1', '::/0', true],
    ['2001:db8:8000::1', '2001:db8::/33', false],
  ])('%s in %s: %s', (address, network, expected) => {
    const [parsed, range] = [parseAddress(address), parseNetwork(network)];
    expect(parsed !== undefined && range !== undefined && isInNetwork(parsed, range)).toBe(expected);
  });
});

describe('properties', () => {
  test('every spelling of an address is that address', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const once = parseAddress(text)?.text;
        expect(once).toBeDefined();
        expect(parseAddress(once as string)?.text).toBe(once);
        expect(parseAddress(text.toUpperCase())?.text).toBe(once);
        expect(parseAddress(`${text}%1`)?.text).toBe(once);
      }),
    );
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        expect(counted(`::ffff:${text}`)).toBe(text);
        expect(counted(`64:ff9b::${text}`)).toBe(text);
      }),
    );
  });

  test('any text at all has an answer', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(...'0123456789abcdef:.%/[]') }),
    );
    fc.assert(
      fc.property(text, (anything) => {
        parseNetwork(anything);
        const address = parseAddress(anything);
        expect([undefined, 4, 16]).toContain(address?.bytes.length);
        expect(address?.bytes.every((byte) => byte >= 0 && byte <= 255) ?? true).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});
