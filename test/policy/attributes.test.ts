/** A value has one spelling, in a rule file and in a request. */
import { expect, test } from 'vitest';
import { canonicalValue } from '../../src/policy/attributes.ts';

test.each([
  ['API.example.com', 'api.example.com'],
  ['api.example.com.', 'api.example.com'],
  ['api.example.com..', 'api.example.com'],
  ['api.example.com:8443', 'api.example.com'],
  ['api.example.com.:', 'api.example.com'],
  ['[2001:db8::1]:443', '[2001:db8::1]'],
  ['[2001:db8::1]', '[2001:db8::1]'],
])('the host %s is %s', (written, host) => {
  expect(canonicalValue('host', written, {})).toBe(host);
});
