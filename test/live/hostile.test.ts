/** Requests that no browser sends, over a bare socket, against the limiter as it is served: none is a 500, none passes for free. */
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts } from '../../scripts/serve/ports.ts';

const START_MS_MAX = 60_000;

let served: ServeChild;
let port: number;
let addresses = 0;

beforeAll(async () => {
  port = await freePorts(1);
  served = await startServe('--port', String(port), '--rules', join(import.meta.dirname, 'hostile.yaml'));
}, START_MS_MAX);

afterAll(() => served?.stop());

/** Sends these bytes and answers the status of what comes back, or `closed`. */
function send(head: string): Promise<number | 'closed'> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from(head, 'latin1')));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
      const status = /^HTTP\/1\.1 (\d{3})/.exec(answer);
      if (status === null) return;
      socket.destroy();
      resolve(Number(status[1]));
    });
    socket.on('close', () => resolve('closed'));
    socket.on('error', reject);
  });
}

const request = (target: string, headers: readonly string[] = [], method = 'GET') =>
  `${[`${method} ${target} HTTP/1.1`, 'Host: api.example.com', ...headers].join('\r\n')}\r\n\r\n`;

const INVENTED = 'x'.repeat(16_000);

/** Each is sent until it is denied; an unlimited pass would go on for ever. */
const HOSTILE: Readonly<Record<string, string>> = {
  'a header of 16 KB': request('/', [`X-Plan: ${INVENTED}`, 'CF-Connecting-IP: 192.0.2.1']),
  'a key of 16 KB': request('/', [`X-API-Key: ${INVENTED}`, 'CF-Connecting-IP: 192.0.2.2']),
  'broken percent escapes': request('/%/%zz/%e2%28%a1/%', ['CF-Connecting-IP: 192.0.2.3']),
  'broken UTF-8': request('/\xff\xfe\xc0\xaf', ['CF-Connecting-IP: 192.0.2.4']),
  'broken UTF-8 in a key': request('/', ['X-API-Key: \xff\xfe', 'CF-Connecting-IP: 192.0.2.5']),
  '10,000 query parameters': request(`/?${'a=1&'.repeat(10_000)}api_key=x`, ['CF-Connecting-IP: 192.0.2.6']),
  'a key with quotes and delimiters': request('/', [
    'X-API-Key: a"b\'c|d:e_f/g%h',
    'CF-Connecting-IP: 192.0.2.7',
  ]),
  'a key with an escaped line break and NUL': request('/?api_key=a%0d%0ab%00c', [
    'CF-Connecting-IP: 192.0.2.8',
  ]),
  'no address at all': request('/'),
  'an address that is none': request('/', ['CF-Connecting-IP: ::::nonsense%%%']),
  'a repeated Authorization': request('/', [
    'Authorization: Bearer k_known',
    'Authorization: Bearer k_known',
    'CF-Connecting-IP: 192.0.2.9',
  ]),
  'names of object properties': request('/?__proto__=1', [
    'X-Plan: __proto__',
    'X-API-Key: constructor',
    'CF-Connecting-IP: 192.0.2.10',
  ]),
  'dots without end': request(`/${'../'.repeat(2_000)}login`, ['CF-Connecting-IP: 192.0.2.11']),
  'slashes without end': request(`${'/'.repeat(5_000)}login`, ['CF-Connecting-IP: 192.0.2.12']),
  'a method that nobody knows': request('/', ['CF-Connecting-IP: 192.0.2.13'], 'PROPFIND'),
  'a Host that is none': `GET / HTTP/1.1\r\nHost: ][\r\nCF-Connecting-IP: 192.0.2.14\r\n\r\n`,
  'a CF-Blob that is an empty object': request('/', ['CF-Blob: {}', 'CF-Connecting-IP: 192.0.2.15']),
  'a CF-Blob that is no JSON': request('/', ['CF-Blob: nonsense', 'CF-Connecting-IP: 192.0.2.17']),
  'a CF-Blob of wrong types': request('/', [
    'CF-Blob: {"country":7,"asn":{"a":1},"colo":null}',
    'CF-Connecting-IP: 192.0.2.16',
  ]),
};

describe('a hostile request', () => {
  it.each(Object.entries(HOSTILE))('%s', async (_, head) => {
    const statuses: (number | 'closed')[] = [];
    for (let sent = 0; sent < 51; sent += 1) statuses.push(await send(head));
    for (const status of statuses) expect([200, 400, 414, 429, 431, 'closed']).toContain(status);
    // What the server itself refuses never gets here; everything else is denied in the end.
    const reached = statuses.filter((status) => status === 200 || status === 429);
    if (reached.length > 0) expect(statuses.at(-1)).toBe(429);
  });

  it.each([
    ['/%6cogin'],
    ['//login'],
    ['/login/'],
    ['/./login'],
    ['/x\\..\\login'],
    ['/login\\'],
    ['/\\login'],
    ['/login//..'],
    ['/login//%2e%2e'],
    ['/login/x//../..'],
    ['/login#?x'],
    ['/y', 'x\\login#'],
  ])('for %s, which is /login to an origin, is counted as that', async (target, host = 'api.example.com') => {
    addresses += 1;
    const head = [`POST ${target} HTTP/1.1`, `Host: ${host}`, `CF-Connecting-IP: 198.18.0.${addresses}`];
    const statuses: (number | 'closed')[] = [];
    for (let sent = 0; sent < 6; sent += 1)
      statuses.push(await send(`${head.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`));
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  });

  it.each<[string, (round: number) => string]>([
    ['header', (round) => request('/search', [`X-API-Key: k_${round}`, 'CF-Connecting-IP: 192.0.2.20'])],
    [
      'Authorization',
      (round) => request('/search', [`Authorization: Bearer k_${round}`, 'CF-Connecting-IP: 192.0.2.21']),
    ],
    ['query', (round) => request(`/search?api_key=k_${round}`, ['CF-Connecting-IP: 192.0.2.22'])],
  ])('with another invented key in its %s each time has what its address has', async (_, head) => {
    const statuses: (number | 'closed')[] = [];
    for (let round = 0; round < 7; round += 1) statuses.push(await send(head(round)));
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429]);
  });

  it('does not stop an ordinary one', async () => {
    expect(await send(request('/', ['CF-Connecting-IP: 198.51.100.1']))).toBe(200);
  });
});
