/**
 * Every path of the admin API, in one list: what it takes, what it does, what it answers. The router and the OpenAPI document are both
 * made from it, so neither knows a path that the other does not.
 */
import type * as z from 'zod/mini';
import { boundOf } from '../engine/bound.ts';
import { priceOf } from '../engine/price.ts';
import { readEntry } from '../policy/directory.ts';
import { countedRule, explain } from '../policy/explain.ts';
import { topologyOf } from './bounds.ts';
import { changeBy, controlOf, domainIn, domainOf, type Endpoint, notBound, numberIn } from './call.ts';
import { check } from './check.ts';
import { liftClamp, setClamp, shown as shownClamp } from './clamps.ts';
import { inspect, reset } from './counters.ts';
import { resolve } from './facts.ts';
import { changeOf, hashOf, listed, shown as shownKey } from './keys.ts';
import { notFound, ProblemError } from './problems.ts';
import { activate, diff, list, publish, rollback, show } from './rulesets.ts';
import * as schemas from './schemas.ts';

/** As large as a rule file may be on disk, and what JSON adds. */
const RULES_BYTES_MAX = 2_097_152;

/** A thousand keys, of a kilobyte each with their labels. */
const KEYS_BYTES_MAX = 1_048_576;

const RULESETS = '/v1/rulesets/:domain';

export const ENDPOINTS: readonly Endpoint[] = [
  {
    method: 'post',
    path: '/v1/check',
    summary: 'Decide a request, as the gateway would; 200 whatever the decision.',
    body: schemas.checkBody,
    status: 200,
    answer: schemas.checkAnswer,
    async handle(call) {
      const body = call.body as schemas.CheckBody;
      return { body: await check(await domainOf(call, body.domain), body, call) };
    },
  },
  {
    method: 'post',
    path: '/v1/explain',
    summary: 'Which rules match a request, which win and why, their worst cases and price; changes nothing.',
    body: schemas.explainBody,
    status: 200,
    async handle(call) {
      const { region = call.region, ...body } = call.body as z.output<typeof schemas.explainBody>;
      const { domain: name, attributes, cost } = body;
      const domain = await domainOf(call, name);
      const { facts, ignored } = await resolve(domain, attributes, call);
      const found = explain(domain.matcher, facts, region);
      const its = { ...found, cost: cost ?? found.cost };
      const topology = topologyOf(domain.ruleset, its.cost);
      const policies = its.policies.map((policy) => {
        const isShared = policy.counted?.owner.shared;
        const bound = policy.shadow ? undefined : boundOf(countedRule(policy), { ...topology, isShared });
        return { ...policy, bound: bound ?? null };
      });
      const { isolates, largestCost } = topology;
      const price = priceOf(its.policies, { isolates, cost: its.cost, largestCost }) ?? null;
      return { body: { ...its, attributes: facts.attributes, policies, price, ignored } };
    },
  },
  {
    method: 'post',
    path: '/v1/counters/inspect',
    summary: 'A caller’s counters as their owners hold them.',
    body: schemas.callerBody,
    status: 200,
    async handle(call) {
      const { domain, attributes } = call.body as z.output<typeof schemas.callerBody>;
      return { body: await inspect(await domainOf(call, domain), attributes, call) };
    },
  },
  {
    method: 'post',
    path: '/v1/counters/reset',
    summary: 'Set a caller’s counters back to full.',
    body: schemas.callerBody,
    status: 200,
    async handle(call) {
      const { domain, attributes } = call.body as z.output<typeof schemas.callerBody>;
      const body = await reset(await domainOf(call, domain), attributes, call);
      await call.ports.control?.note(call.author, 'reset', { counters: body.reset });
      return { body };
    },
  },
  {
    method: 'put',
    path: RULESETS,
    summary: 'Publish a version, and put it in force unless told otherwise; 422 with every mistake.',
    body: schemas.publishBody,
    bytesMax: RULES_BYTES_MAX,
    status: 201,
    async handle(call) {
      const {
        rules,
        message,
        activate: isActivated = true,
      } = call.body as z.output<typeof schemas.publishBody>;
      const { author, ports } = call;
      const request = { domain: domainIn(call), rules, message, activate: isActivated, author };
      const made = await publish(controlOf(call), { ...request, nowMs: ports.nowMs() });
      ports.changed({ domain: request.domain, activation: made.activation }, call.background);
      return { status: 201, body: made };
    },
  },
  {
    method: 'get',
    path: RULESETS,
    summary: 'The versions of a domain, the newest first, and which is in force.',
    query: schemas.pageQuery,
    status: 200,
    async handle(call) {
      return {
        body: await list(controlOf(call), domainIn(call), call.query as z.output<typeof schemas.pageQuery>),
      };
    },
  },
  {
    method: 'post',
    path: `${RULESETS}/rollback`,
    summary: 'Put the version in force that was in force before.',
    status: 200,
    async handle(call) {
      const domain = domainIn(call);
      const body = await rollback(controlOf(call), { domain, author: call.author });
      call.ports.changed({ domain, activation: body.activation }, call.background);
      return { body };
    },
  },
  {
    method: 'get',
    path: `${RULESETS}/:version`,
    summary: 'One version: the rule file, its keys as hashes.',
    status: 200,
    async handle(call) {
      return { body: await show(controlOf(call), domainIn(call), numberIn(call, 'version')) };
    },
  },
  {
    method: 'post',
    path: `${RULESETS}/:version/activate`,
    summary: 'Put a version in force.',
    query: schemas.activateQuery,
    status: 200,
    async handle(call) {
      const { atLeast } = call.query as z.output<typeof schemas.activateQuery>;
      const named = { domain: domainIn(call), version: numberIn(call, 'version') };
      const wanted = { ...named, author: call.author, atLeast };
      const body = await activate(controlOf(call), wanted);
      call.ports.changed({ domain: wanted.domain, activation: body.activation }, call.background);
      return { body };
    },
  },
  {
    method: 'get',
    path: `${RULESETS}/:version/diff/:other`,
    summary: 'What changes, and for whom, from one version to another.',
    status: 200,
    async handle(call) {
      const versions = { before: numberIn(call, 'version'), after: numberIn(call, 'other') };
      return { body: await diff(controlOf(call), domainIn(call), versions) };
    },
  },
  {
    method: 'put',
    path: '/v1/clamps',
    summary: 'Override one caller for a while.',
    body: schemas.clampBody,
    status: 200,
    async handle(call) {
      const body = call.body as schemas.ClampBody;
      const { clamp, said } = await setClamp(await domainOf(call, body.domain), body, changeBy(call));
      call.ports.changed({ domain: clamp.domain, clamp }, call.background);
      return { body: said };
    },
  },
  {
    method: 'get',
    path: '/v1/clamps',
    summary: 'The clamps in force.',
    query: schemas.domainQuery,
    status: 200,
    async handle(call) {
      const { domain = call.ports.ownDomain } = call.query as z.output<typeof schemas.domainQuery>;
      await domainOf(call, domain);
      return { body: { clamps: (await controlOf(call).clamps(domain)).map(shownClamp) } };
    },
  },
  {
    method: 'delete',
    path: '/v1/clamps',
    summary: 'Lift the clamp on a caller.',
    body: schemas.callerBody,
    status: 200,
    async handle(call) {
      const { domain, attributes } = call.body as z.output<typeof schemas.callerBody>;
      const { clamp, said } = await liftClamp(await domainOf(call, domain), attributes, changeBy(call));
      call.ports.changed({ domain: clamp.domain, clamp }, call.background);
      return { body: said };
    },
  },
  {
    method: 'put',
    path: '/v1/keys',
    summary: 'Add keys to the directory, or change them.',
    body: schemas.putKeysBody,
    bodyOf: schemas.putKeysBodyOf,
    bytesMax: KEYS_BYTES_MAX,
    status: 200,
    async handle(call) {
      const changes = listed(call.body as z.output<typeof schemas.putKeysBody>).map(changeOf);
      await controlOf(call).putKeys(changes, call.author);
      for (const { keySha256 } of changes) call.ports.forgetKey(keySha256);
      call.ports.changed({ domain: call.ports.ownDomain }, call.background);
      return { body: { stored: changes.length } };
    },
  },
  {
    method: 'get',
    path: '/v1/keys',
    summary: 'The directory in order of hashes, page by page; or one key.',
    query: schemas.keysQuery,
    status: 200,
    async handle(call) {
      const { keySha256, after, limit } = call.query as z.output<typeof schemas.keysQuery>;
      if (keySha256 !== undefined) {
        const entry = readEntry(await controlOf(call).key(keySha256));
        if (entry === undefined) throw new ProblemError(notFound('The directory does not hold this key.'));
        return { body: { keys: [shownKey({ keySha256, entry })], next: null } };
      }
      const keys = await controlOf(call).keys({ after, limit });
      const next = keys.length === limit ? (keys.at(-1)?.keySha256 ?? null) : null;
      return { body: { keys: keys.map(shownKey), next } };
    },
  },
  {
    method: 'delete',
    path: '/v1/keys',
    summary: 'Take keys out of the directory.',
    body: schemas.deleteKeysBody,
    bodyOf: schemas.deleteKeysBodyOf,
    bytesMax: KEYS_BYTES_MAX,
    status: 200,
    async handle(call) {
      const changes = listed(call.body as z.output<typeof schemas.deleteKeysBody>).map((name) => ({
        keySha256: hashOf(name),
      }));
      const { removed } = await controlOf(call).putKeys(changes, call.author);
      for (const { keySha256 } of changes) call.ports.forgetKey(keySha256);
      if (removed === 0) throw new ProblemError(notFound('The directory holds none of these keys.'));
      return { body: { removed } };
    },
  },
  {
    method: 'get',
    path: '/v1/audit',
    summary: 'Who changed what, the newest first.',
    query: schemas.pageQuery,
    status: 200,
    async handle(call) {
      const entries = await controlOf(call).audit(call.query as z.output<typeof schemas.pageQuery>);
      const shown = entries.map(({ atMs, detail, ...entry }) => ({
        ...entry,
        at: new Date(atMs).toISOString(),
        detail: JSON.parse(detail) as unknown,
      }));
      return { body: { entries: shown } };
    },
  },
  {
    method: 'get',
    path: '/metrics',
    summary: 'All metrics in the text format of Prometheus.',
    status: 200,
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    async handle({ ports }) {
      if (ports.metrics === undefined) throw new ProblemError(notBound('METRICS'));
      const text = await ports.metrics();
      return new Response(text, {
        headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' },
      });
    },
  },
];
