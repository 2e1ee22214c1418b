/** Versions of rule files through the admin API: published whole or refused whole, put in force, compared. */

import { compile, type Problem } from '../policy/compile.ts';
import type { ActivationWish, ControlApi, Page, StoredActivation, StoredVersion } from '../policy/control.ts';
import { diffRulesets, type RulesetDiff } from '../policy/diff.ts';
import { withoutRawKeys } from '../policy/redact.ts';
import type { Ruleset } from '../policy/ruleset.ts';
import { sha256 } from '../policy/sha256.ts';
import { notFound, ProblemError, shownProblem } from './problems.ts';

export interface PublishRequest {
  readonly domain: string;
  readonly rules: unknown;
  readonly message: string;
  readonly activate: boolean;
  readonly author: string;
  readonly nowMs: number;
}

/** Keys are hashed before anything goes on; a file with mistakes goes nowhere. */
export async function publish(
  control: ControlApi,
  { rules, nowMs, ...publication }: PublishRequest,
): Promise<{ version: number; activation?: number; warnings: readonly object[] }> {
  const compiled = compile(rules, { sha256, builtAtMs: nowMs });
  if (!compiled.ok) throw refused(compiled.errors);
  const { ruleset, warnings } = compiled;
  const { domain } = publication;
  if (ruleset.domain !== domain) {
    const message = `is ${JSON.stringify(ruleset.domain)}, and this path is about ${JSON.stringify(domain)}`;
    throw refused([{ path: ['domain'], message }]);
  }
  const stored = { ...publication, rules: withoutRawKeys(rules, sha256), ruleset, warnings };
  return { ...(await control.publish(stored)), warnings: warnings.map(shownProblem) };
}

export async function activate(
  control: ControlApi,
  { domain, version, ...wish }: ActivationWish & { domain: string; version: number },
): Promise<{ activation: number; version: number }> {
  const activation = await control.activate(domain, version, wish);
  if (typeof activation === 'string') throw new ProblemError(noVersion(domain, version));
  return { activation, version };
}

export async function rollback(
  control: ControlApi,
  { domain, author }: { domain: string; author: string },
): Promise<{ activation: number; version: number }> {
  const done = await control.rollback(domain, author);
  if (typeof done !== 'string') return done;
  throw new ProblemError({
    status: 409,
    error: 'nothing_to_roll_back_to',
    message: `No other version of ${JSON.stringify(domain)} was in force before the present one.`,
  });
}

export async function list(control: ControlApi, domain: string, page: Page) {
  const { active, versions, activations } = await control.versions(domain, page);
  return {
    domain,
    active: active === undefined ? null : shownActivation(active),
    versions: versions.map(({ createdAtMs, ...summary }) => ({
      ...summary,
      createdAt: new Date(createdAtMs).toISOString(),
      activations: activations.filter(({ version }) => version === summary.version).map(shownActivation),
    })),
  };
}

export async function show(control: ControlApi, domain: string, version: number) {
  const { createdAtMs, source, ruleset, warnings, ...summary } = await find(control, domain, version);
  return {
    ...summary,
    createdAt: new Date(createdAtMs).toISOString(),
    warnings: (JSON.parse(warnings) as Problem[]).map(shownProblem),
    rules: JSON.parse(source) as unknown,
    /** As it was compiled: what decides. */
    compiled: JSON.parse(ruleset) as Ruleset,
  };
}

export async function diff(
  control: ControlApi,
  domain: string,
  { before, after }: { before: number; after: number },
): Promise<RulesetDiff> {
  const [one, other] = await Promise.all([find(control, domain, before), find(control, domain, after)]);
  return diffRulesets(JSON.parse(one.ruleset) as Ruleset, JSON.parse(other.ruleset) as Ruleset);
}

async function find(control: ControlApi, domain: string, version: number): Promise<StoredVersion> {
  const found = await control.version(domain, version);
  if (found === undefined) throw new ProblemError(noVersion(domain, version));
  return found;
}

function noVersion(domain: string, version: number) {
  return notFound(`There is no version ${version} of ${JSON.stringify(domain)}.`);
}

function refused(errors: readonly Problem[]): ProblemError {
  return new ProblemError({
    status: 422,
    error: 'invalid_rules',
    message: `The rules have ${errors.length} ${errors.length === 1 ? 'mistake' : 'mistakes'}. Nothing was published.`,
    errors,
  });
}

function shownActivation({ activatedAtMs, ...activation }: StoredActivation) {
  return { ...activation, activatedAt: new Date(activatedAtMs).toISOString() };
}
