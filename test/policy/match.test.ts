/** Which rules a request meets, as tables: a rule file, then requests and what wins. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sha256 } from '../../scripts/limiter/load.ts';
import { factsOf, matcherFrom, tell, withDescriptors } from './rules-from.ts';

interface Request {
  readonly attributes?: Record<string, string>;
  readonly path?: string;
  readonly method?: string;
}

/** A request, what wins among the enforced rules, and what among the shadow rules. */
type Row = readonly [name: string, request: Request, enforced: readonly string[], shadow?: readonly string[]];

function table(name: string, yaml: string, rows: readonly Row[]): void {
  describe(name, () => {
    const matcher = matcherFrom(yaml);
    for (const [title, request, enforced, shadow = []] of rows) {
      test(title, () => {
        const match = matcher.match(factsOf(request.attributes ?? {}, request.path, request.method));
        expect(match.enforced.map(tell)).toEqual(enforced);
        expect(match.shadow.map(tell)).toEqual(shadow);
      });
    }
  });
}

const LIMIT = 'unit: minute, requests_per_unit: 10';
const PREMIUM = { tier: 'premium', api_key: sha256('k_live'), org: 'acme' };
const KEY = `api_key=${sha256('k_live')}`;

table(
  'an override beside tiers with routes',
  withDescriptors(`
  - { key: tier, value: premium, rate_limit: { ${LIMIT} } }
  - key: tier
    value: free
    descriptors:
      - { key: route, value: /v1/search, rate_limit: [{ ${LIMIT} }, { unit: day, requests_per_unit: 50, policy: daily }] }
  - { key: api_key, value: k_live, rate_limit: { ${LIMIT} } }`),
  [
    ['the caller that is named', { attributes: PREMIUM }, [`default: ${KEY} @ ${KEY}`]],
    [
      'the caller that is named, on a route of its tier: still the override, though it is shallower',
      { attributes: { ...PREMIUM, tier: 'free' }, path: '/v1/search' },
      [`default: ${KEY} @ ${KEY}`, `daily: tier=free > route=/v1/search @ ${KEY}`],
    ],
    [
      'another caller of the tier',
      { attributes: { ...PREMIUM, api_key: 'other' } },
      ['default: tier=premium @ api_key=other'],
    ],
    [
      'two limits on one key are two policies, and both apply (E15 E17)',
      { attributes: { tier: 'free' }, path: '/v1/search' },
      [
        'default: tier=free > route=/v1/search @ remote_address=192.0.2.1',
        'daily: tier=free > route=/v1/search @ remote_address=192.0.2.1',
      ],
    ],
    [
      'a tier whose rules are all about a route, elsewhere',
      { attributes: { tier: 'free' }, path: '/v1' },
      [],
    ],
  ],
);

table(
  'an organisation beside a key',
  withDescriptors(`
  - { key: org, rate_limit: { ${LIMIT}, policy: org } }
  - { key: api_key, rate_limit: { ${LIMIT} } }`),
  [
    ['both count', { attributes: PREMIUM }, ['org: org @ org=acme', `default: api_key @ ${KEY}`]],
    ['a key without an organisation', { attributes: { api_key: 'k' } }, ['default: api_key @ api_key=k']],
    ['an empty value is no value', { attributes: { api_key: '', org: '' } }, []],
  ],
);

table(
  'any value above an exact one, and an exact one above any',
  withDescriptors(`
  - key: org
    descriptors:
      - { key: tier, value: free, rate_limit: { ${LIMIT} } }
  - key: org
    value: acme
    descriptors:
      - { key: tier, rate_limit: { ${LIMIT} } }
      - { key: user, rate_limit: { ${LIMIT}, policy: user } }`),
  [
    [
      'the level nearest to the leaf decides first',
      { attributes: { org: 'acme', tier: 'free' } },
      ['default: org > tier=free @ org=acme'],
    ],
    [
      'only the other matches',
      { attributes: { org: 'acme', tier: 'gold' } },
      ['default: org=acme > tier @ tier=gold'],
    ],
    ['a child of another value', { attributes: { org: 'beta', tier: 'gold', user: 'u' } }, []],
    [
      'counted by the keys without a value',
      { attributes: { org: 'acme', user: 'u' } },
      ['user: org=acme > user @ user=u'],
    ],
  ],
);

table(
  'deeper, then more exact, then longer, then earlier',
  withDescriptors(`
  - { key: org, value: a*, rate_limit: { ${LIMIT} } }
  - { key: org, value: ac*, rate_limit: { ${LIMIT} } }
  - { key: org, value: acme, rate_limit: { ${LIMIT} } }
  - { key: tier, value: gold, rate_limit: { ${LIMIT} } }
  - { key: org, rate_limit: { ${LIMIT} } }
  - { key: org, descriptors: [{ key: country, rate_limit: { ${LIMIT} } }] }`),
  [
    ['any', { attributes: { org: 'beta' } }, ['default: org @ org=beta']],
    ['pattern over any', { attributes: { org: 'abel' } }, ['default: org=a* @ remote_address=192.0.2.1']],
    ['the longer pattern', { attributes: { org: 'acorn' } }, ['default: org=ac* @ remote_address=192.0.2.1']],
    ['exact over pattern', { attributes: { org: 'acme' } }, ['default: org=acme @ remote_address=192.0.2.1']],
    [
      'of two exact ones over unlike keys, the first in the file, though its literal is not the longer',
      { attributes: { org: 'acme', tier: 'gold' } },
      ['default: org=acme @ remote_address=192.0.2.1'],
    ],
    [
      'deeper over exact',
      { attributes: { org: 'acme', country: 'DE' } },
      ['default: org > country @ country=DE org=acme'],
    ],
  ],
);

table(
  'literals are compared from the leaf to the root',
  withDescriptors(`
  - { key: org, value: acm*, descriptors: [{ key: tier, value: g*, rate_limit: { ${LIMIT} } }] }
  - { key: org, value: a*, descriptors: [{ key: tier, value: go*, rate_limit: { ${LIMIT} } }] }`),
  [
    [
      'the longer one at the leaf, whatever stands above it',
      { attributes: { org: 'acme', tier: 'gold' } },
      ['default: org=a* > tier=go* @ remote_address=192.0.2.1'],
    ],
  ],
);

/** Over unlike keys, "the longer literal" and "the first in the file" could go round in circles: a beats c beats b beats a. */
table(
  'patterns over unlike keys that would beat each other in a circle',
  withDescriptors(`
  - { key: org, value: a*, rate_limit: { ${LIMIT} } }
  - { key: tier, value: g*, rate_limit: { ${LIMIT} } }
  - { key: org, value: ac*, rate_limit: { ${LIMIT} } }`),
  [
    [
      'the longer literal of a key puts the shorter out; of those left, the first in the file wins',
      { attributes: { org: 'acme', tier: 'gold' } },
      ['default: tier=g* @ remote_address=192.0.2.1'],
    ],
    [
      'without the third key',
      { attributes: { org: 'acme' } },
      ['default: org=ac* @ remote_address=192.0.2.1'],
    ],
  ],
);

table(
  'what a rule counts per',
  withDescriptors(
    `
  - { key: tier, rate_limit: { ${LIMIT}, policy: all, per: [] } }
  - { key: tier, rate_limit: { ${LIMIT}, policy: tier } }
  - { key: tier, rate_limit: { ${LIMIT}, policy: org, per: [org] } }
  - { key: tier, rate_limit: { ${LIMIT}, policy: both, per: [user, org] } }
  - { key: tier, rate_limit: { ${LIMIT}, policy: subject, per: [subject, remote_address] } }
  - { key: subject, rate_limit: { ${LIMIT}, policy: someone } }`,
  ),
  [
    [
      'everything is there',
      { attributes: { tier: 't', org: 'o', user: 'u', api_key: 'k' } },
      [
        'all: tier @ ',
        'tier: tier @ tier=t',
        'org: tier @ org=o',
        'both: tier @ org=o user=u',
        'subject: tier @ api_key=k remote_address=192.0.2.1',
        'someone: subject @ api_key=k',
      ],
    ],
    [
      'an attribute that the request lacks falls to the subject',
      { attributes: { tier: 't', user: 'u' } },
      [
        'all: tier @ ',
        'tier: tier @ tier=t',
        'org: tier @ user=u',
        'both: tier @ user=u',
        'subject: tier @ remote_address=192.0.2.1 user=u',
        'someone: subject @ user=u',
      ],
    ],
    [
      'a subject that is an address is counted once beside that address',
      { attributes: { tier: 't' } },
      [
        'all: tier @ ',
        'tier: tier @ tier=t',
        'org: tier @ remote_address=192.0.2.1',
        'both: tier @ remote_address=192.0.2.1',
        'subject: tier @ remote_address=192.0.2.1',
        'someone: subject @ remote_address=192.0.2.1',
      ],
    ],
    [
      'no readable address either: one counter for all such callers, not none',
      { attributes: { remote_address: 'somewhere' } },
      ['someone: subject @ remote_address=unknown'],
    ],
  ],
);

table(
  'shadow rules beside enforced ones (S01)',
  withDescriptors(`
  - { key: api_key, value: k_live, rate_limit: { ${LIMIT}, shadow_mode: true } }
  - { key: tier, rate_limit: { ${LIMIT} } }
  - { key: tier, value: free, rate_limit: { ${LIMIT}, shadow_mode: true } }
  - { key: org, rate_limit: { ${LIMIT}, policy: org, shadow_mode: true } }`),
  [
    [
      'the more specific shadow rule hides no enforced one, and competes with its kind only',
      { attributes: { ...PREMIUM, tier: 'free' } },
      ['default: tier @ tier=free'],
      [`default: ${KEY} @ ${KEY}`, 'org: org @ org=acme'],
    ],
    [
      'another caller',
      { attributes: { tier: 'free' } },
      ['default: tier @ tier=free'],
      ['default: tier=free @ remote_address=192.0.2.1'],
    ],
  ],
);

table(
  'unlimited takes its policy out, and no other',
  withDescriptors(`
  - { key: tier, rate_limit: { ${LIMIT} } }
  - { key: tier, rate_limit: { ${LIMIT}, policy: daily } }
  - { key: tier, value: staff, rate_limit: { unlimited: true } }`),
  [
    ['staff', { attributes: { tier: 'staff' } }, ['daily: tier @ tier=staff']],
    ['others', { attributes: { tier: 't' } }, ['default: tier @ tier=t', 'daily: tier @ tier=t']],
  ],
);

/** How the gateway tells the two modes apart: with `address` an unknown key is no `api_key`; with `subject` it is one. */
table(
  'unknown keys in both modes',
  withDescriptors(
    `
  - { key: tier, value: free, rate_limit: { ${LIMIT} } }
  - { key: remote_address, rate_limit: { ${LIMIT}, policy: flood, scope: local } }`,
    'identity: { unknown_keys: subject, default: { tier: free } }',
  ),
  [
    [
      'address',
      { attributes: { tier: 'free' } },
      ['default: tier=free @ remote_address=192.0.2.1', 'flood: remote_address @ remote_address=192.0.2.1'],
    ],
    [
      'subject',
      { attributes: { tier: 'free', api_key: 'invented' } },
      ['default: tier=free @ api_key=invented', 'flood: remote_address @ remote_address=192.0.2.1'],
    ],
  ],
);

const ROUTES = withDescriptors(`
  - { key: route, rate_limit: { ${LIMIT}, policy: any } }
  - { key: route, value: "/v1/*", rate_limit: { ${LIMIT}, per: [route] } }
  - { key: route, value: "/v1/users/:id", rate_limit: { ${LIMIT}, per: [route] } }
  - { key: route, value: /v1/users/me, rate_limit: { ${LIMIT}, per: [route] } }
  - { key: route, value: "/:version/users/me", rate_limit: { ${LIMIT}, policy: wide, per: [route] } }
  - { key: route, value: /login/, rate_limit: { ${LIMIT}, policy: login } }`);

table('route patterns that overlap (D07 E07 E09)', ROUTES, [
  [
    'exact over parameter over open',
    { path: '/v1/users/me' },
    [
      'any: route @ route=/v1/users/me',
      'default: route=/v1/users/me @ route=/v1/users/me',
      'wide: route=/:version/users/me @ route=/:version/users/me',
    ],
  ],
  [
    'parameter over open',
    { path: '/v1/users/7' },
    ['any: route @ route=/v1/users/:id', 'default: route=/v1/users/:id @ route=/v1/users/:id'],
  ],
  ['open', { path: '/v1/users/7/x' }, ['any: route @ route=/v1/*', 'default: route=/v1/* @ route=/v1/*']],
  [
    'open covers its own stem',
    { path: '/v1' },
    ['any: route @ route=/v1/*', 'default: route=/v1/* @ route=/v1/*'],
  ],
  ['but no longer word', { path: '/v11' }, []],
  [
    'a pattern is normalised as paths are',
    { path: '/login' },
    ['any: route @ route=/login', 'login: route=/login @ remote_address=192.0.2.1'],
  ],
  ['a path that no pattern matches has no route', { path: '/nothing' }, []],
  ['no path at all', {}, []],
  [
    'an attribute named route is taken as the path, in any spelling',
    { attributes: { route: '//%6Cogin/?next=1' } },
    ['any: route @ route=/login', 'login: route=/login @ remote_address=192.0.2.1'],
  ],
]);

table(
  'a route below a route counts by the one nearest to the leaf',
  withDescriptors(`
  - key: route
    value: "/v1/*"
    descriptors: [{ key: route, value: "/v1/users/:id", rate_limit: { ${LIMIT}, per: [route] } }]`),
  [
    [
      'both match',
      { path: '/v1/users/7' },
      ['default: route=/v1/* > route=/v1/users/:id @ route=/v1/users/:id'],
    ],
    ['one does not', { path: '/v1/users' }, []],
  ],
);

table(
  'HEAD is GET, and methods are folded',
  withDescriptors(`
  - { key: method, value: get, rate_limit: { ${LIMIT}, policy: reads } }
  - { key: method, rate_limit: { ${LIMIT}, policy: method } }`),
  [
    [
      'HEAD',
      { method: 'HEAD' },
      ['reads: method=GET @ remote_address=192.0.2.1', 'method: method @ method=GET'],
    ],
    ['post', { method: 'post' }, ['method: method @ method=POST']],
  ],
);

table(
  'addresses and networks (E11)',
  withDescriptors(`
  - { key: remote_address, rate_limit: { ${LIMIT} } }
  - { key: remote_address, value: 10.0.0.0/8, rate_limit: { ${LIMIT} } }
  - { key: remote_address, value: 10.1.0.0/16, rate_limit: { ${LIMIT} } }
  - { key: remote_address, value: "2001:db8::/32", rate_limit: { ${LIMIT} } }
  - { key: remote_address, value: "::ffff:10.1.2.3", rate_limit: { ${LIMIT} } }`),
  [
    [
      'the network',
      { attributes: { remote_address: '10.9.9.9' } },
      ['default: remote_address=10.0.0.0/8 @ remote_address=10.9.9.9'],
    ],
    [
      'the narrower network',
      { attributes: { remote_address: '10.1.9.9' } },
      ['default: remote_address=10.1.0.0/16 @ remote_address=10.1.9.9'],
    ],
    [
      'the one address, whatever its notation',
      { attributes: { remote_address: '64:ff9b::a01:203' } },
      ['default: remote_address=10.1.2.3 @ remote_address=10.1.2.3'],
    ],
    [
      'IPv6 by its /64',
      { attributes: { remote_address: '2001:DB8::1:0:0:1%eth0' } },
      ['default: remote_address=2001:db8:0:0:0:0:0:0/32 @ remote_address=2001:db8:0:0:0:0:0:0/64'],
    ],
    [
      'elsewhere',
      { attributes: { remote_address: '11.0.0.1' } },
      ['default: remote_address @ remote_address=11.0.0.1'],
    ],
  ],
);

table(
  'the example with most of what a rule file can say',
  readFileSync(join(import.meta.dirname, '..', '..', 'rules', 'examples', 'bookings.yaml'), 'utf8'),
  [
    [
      'a visitor that searches meets the rules of its route, and the flood tier',
      { attributes: { tier: 'visitor' }, path: '/trips/search' },
      [
        'default: tier=visitor > route=/trips/search @ remote_address=192.0.2.1',
        'daily: tier=visitor > route=/trips/search @ remote_address=192.0.2.1',
        'flood: remote_address @ remote_address=192.0.2.1',
      ],
    ],
    [
      'a partner that is watched is limited by its tier, and counted in shadow beside it',
      {
        attributes: { api_key: sha256('partner_north_2'), tier: 'partner', org: 'north' },
        path: '/trips/7/book',
        method: 'POST',
      },
      [
        `default: tier=partner @ api_key=${sha256('partner_north_2')}`,
        'org: org @ org=north',
        `book: route=/trips/:id/book > method=POST @ api_key=${sha256('partner_north_2')}`,
        'flood: remote_address @ remote_address=192.0.2.1',
      ],
      [`default: api_key=${sha256('partner_north_2')} @ api_key=${sha256('partner_north_2')}`],
    ],
    [
      'the address of the monitoring is not counted, but by the flood tier',
      { attributes: { tier: 'visitor', remote_address: '203.0.113.20' }, path: '/trips/search' },
      [
        'daily: tier=visitor > route=/trips/search @ remote_address=203.0.113.20',
        'flood: remote_address @ remote_address=203.0.113.20',
      ],
    ],
    [
      'a channel that scrapes has a policy of its own, however it is spelt',
      { attributes: { tier: 'app', user: 'app', channel: 'Scraper 9' } },
      [
        'default: tier=app @ user=app',
        'channel: channel=scraper* @ channel=scraper9',
        'flood: remote_address @ remote_address=192.0.2.1',
      ],
    ],
  ],
);

table(
  'one address, or a network, beside a tier with routes',
  withDescriptors(`
  - key: tier
    value: free
    descriptors:
      - { key: route, value: /v1/search, rate_limit: { ${LIMIT} } }
  - { key: remote_address, value: 192.0.2.7, rate_limit: { ${LIMIT} } }
  - { key: remote_address, value: 198.51.100.0/24, rate_limit: { ${LIMIT} } }`),
  [
    [
      'an address that is named is one caller: it wins, though it is shallower',
      { attributes: { tier: 'free', remote_address: '192.0.2.7' }, path: '/v1/search' },
      ['default: remote_address=192.0.2.7 @ remote_address=192.0.2.7'],
    ],
    [
      'a network is many callers: the deeper rule wins',
      { attributes: { tier: 'free', remote_address: '198.51.100.7' }, path: '/v1/search' },
      ['default: tier=free > route=/v1/search @ remote_address=198.51.100.7'],
    ],
  ],
);

table(
  'a declared attribute that is folded (E05)',
  withDescriptors(
    `
  - { key: login, rate_limit: { ${LIMIT} } }
  - { key: login, value: Root@X, rate_limit: { ${LIMIT}, policy: root, per: [login] } }`,
    'attributes: { login: { header: x-login, fold: true } }',
  ),
  ['Nick@x', 'nick@x', 'n ick@x ', 'NICK@X', 'Ｎick@x'].map((login) => {
    return [JSON.stringify(login), { attributes: { login } }, ['default: login @ login=nick@x']] as const;
  }),
);

table(
  'patterns work below the top (D03), and a rule is as deep as its path (D01)',
  withDescriptors(
    `
  - { key: a, value: x, descriptors: [{ key: b, value: "foo*", rate_limit: { ${LIMIT} } }] }
  - { key: a, value: y, rate_limit: { ${LIMIT} } }`,
    'attributes: { a: { header: x-a }, b: { header: x-b } }',
  ),
  [
    [
      'both levels',
      { attributes: { a: 'x', b: 'foobar' } },
      ['default: a=x > b=foo* @ remote_address=192.0.2.1'],
    ],
    ['the parent alone', { attributes: { a: 'x' } }, []],
    ['the child alone', { attributes: { b: 'foobar' } }, []],
    [
      'more attributes than the rule asks for do not hide it',
      { attributes: { a: 'y', b: 'z' } },
      ['default: a=y @ remote_address=192.0.2.1'],
    ],
  ],
);

describe('what else a match says', () => {
  const matcher = matcherFrom(
    withDescriptors(
      `
  - { key: route, value: "/v1/*", rate_limit: { ${LIMIT} } }
  - { key: tier, value: staff, rate_limit: { unlimited: true, policy: other } }
  - { key: tier, value: trial, rate_limit: { ${LIMIT}, policy: other, shadow_mode: true } }`,
      `costs:
  - { method: POST, cost: 2 }
  - { route: "/v1/*", cost: 3 }
  - { route: /v1/search, cost: 4 }
  - { route: /v1/search, method: GET, cost: 10 }
  - { route: /free, cost: 0 }
  - { route: /guess, reserve: 7, cost_header: x-used, default: 5 }`,
    ),
  );

  test.each([
    ['/v1/search', 'GET', 10],
    ['/v1/search', 'HEAD', 10],
    ['/v1/search', 'POST', 4],
    ['/v1/other', 'POST', 3],
    ['/free', 'POST', 0],
    ['/else', 'POST', 2],
    ['/else', 'GET', 1],
  ])('%s %s costs by the most specific entry', (path, method, cost) => {
    expect(matcher.match(factsOf({}, path, method)).cost).toBe(cost);
  });

  test('a cost that is an estimate says where to learn better', () => {
    const { cost, estimate } = matcher.match(factsOf({}, '/guess'));
    expect({ cost, estimate }).toEqual({ cost: 7, estimate: { header: 'x-used', defaultCost: 5 } });
    expect(matcher.match(factsOf({}, '/free')).estimate).toBeUndefined();
  });

  test('the most specific pattern is the route', () => {
    expect(matcher.match(factsOf({}, '/v1/search')).route).toBe('/v1/search');
    expect(matcher.match(factsOf({}, '/v2')).route).toBeUndefined();
  });

  test('unmatched means that no rule of any kind matched', () => {
    expect(matcher.match(factsOf({}, '/v2')).unmatched).toBe(true);
    expect(matcher.match(factsOf({}, '/v1')).unmatched).toBe(false);
    expect(matcher.match(factsOf({ tier: 'staff' }, '/v2'))).toMatchObject({
      unmatched: false,
      enforced: [],
    });
    expect(matcher.match(factsOf({ tier: 'trial' }, '/v2'))).toMatchObject({
      unmatched: false,
      enforced: [],
    });
  });

  test('names that every JavaScript object has are no attributes', () => {
    const odd = matcherFrom(
      withDescriptors(
        `  - { key: constructor, rate_limit: { ${LIMIT} } }`,
        'attributes: { constructor: { header: x-constructor } }',
      ),
    );
    expect(odd.match(factsOf({})).unmatched).toBe(true);
    expect(odd.match(factsOf({ constructor: 'c' })).unmatched).toBe(false);
  });
});
