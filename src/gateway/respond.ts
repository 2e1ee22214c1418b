/**
 * The answers that the limiter gives itself: 429 when a policy is used up, 503 when a closed rule's owner is out of reach or all that can
 * be in progress at once is. They are
 * problem details (RFC 9457) that no cache may keep; a 429 says when to come back, unless coming back cannot help.
 */
import { wholeSeconds } from '../engine/level.ts';
import type { Verdict } from '../engine/verdict.ts';
import type { Fields } from './fields.ts';
import type { Reason } from './reason.ts';

const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded';
const REDUCED_CAPACITY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity';

interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  /** A word for programs. */
  readonly error: string;
  /** A sentence for people: what happened, and what to do. */
  readonly message: string;
}

const IMPOSSIBLE: Problem = {
  type: QUOTA_EXCEEDED,
  title: 'Too Many Requests',
  status: 429,
  error: 'cost_exceeds_limit',
  message:
    'This request costs more than its limit can ever hold, so waiting does not help. Send a smaller one.',
};

const UNAVAILABLE: Problem = {
  type: REDUCED_CAPACITY,
  title: 'Service Unavailable',
  status: 503,
  error: 'limiter_unavailable',
  message:
    'This route is only open while its rate limit can be checked, and it cannot be checked now. Try again shortly.',
};

const AT_CAPACITY: Problem = {
  type: REDUCED_CAPACITY,
  title: 'Service Unavailable',
  status: 503,
  error: 'at_capacity',
  message: 'As many requests as are served at once are in progress. Try again shortly.',
};

/** `fields` go with the answer. */
export function refusal(verdict: Verdict, reason: Reason, fields: readonly Fields[]): Response {
  const retryAfter = verdict.outcome === 'impossible' ? undefined : wholeSeconds(verdict.retryAfterMs, 1);
  const violated = verdict.policies.filter(({ outcome }) => outcome === verdict.outcome);
  const policies = violated.map(({ policy }) => policy);
  return problemResponse(problemOf(verdict, reason), { policies, retryAfter }, fields);
}

/** Nobody knows why the limiter is broken, so there is no better guess than a second. */
export function unavailable(): Response {
  return problemResponse(UNAVAILABLE, { retryAfter: 1 });
}

export function notFound(): Response {
  return problemResponse({
    type: 'about:blank',
    title: 'Not Found',
    status: 404,
    error: 'not_found',
    message:
      'Paths below /_limiter/ are the limiter’s own; this is none of them. GET /_limiter/health is one.',
  });
}

interface Details {
  readonly policies?: readonly string[];
  /** Whole seconds. */
  readonly retryAfter?: number | undefined;
}

export function problemResponse(
  problem: Problem,
  details: Details = {},
  fields: readonly Fields[] = [],
): Response {
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
  };
  if (details.retryAfter !== undefined) headers['Retry-After'] = String(details.retryAfter);
  for (const some of fields) {
    for (const name in some) {
      const value = some[name];
      if (value !== undefined) headers[name] = value;
    }
  }
  return new Response(textOf(problem, details), { status: problem.status, headers });
}

/** A problem is serialized once and what is said of a request is put behind it: floods are answered with these. */
function textOf(problem: Problem, { policies, retryAfter }: Details): string {
  let opening = openings.get(problem);
  if (opening === undefined) {
    opening = JSON.stringify(problem).slice(0, -1);
    openings.set(problem, opening);
  }
  const violated = policies === undefined ? '' : `,"violated-policies":${JSON.stringify(policies)}`;
  const wait = retryAfter === undefined ? '' : `,"retry_after":${retryAfter}`;
  return `${opening}${violated}${wait}}`;
}

const openings = new WeakMap<Problem, string>();

function problemOf({ outcome }: Verdict, { kind, subject }: Reason): Problem {
  if (outcome === 'impossible') return IMPOSSIBLE;
  if (outcome === 'unavailable') return UNAVAILABLE;
  if (kind === 'all_in_progress') return AT_CAPACITY;
  return (kind === 'own_in_progress' ? tooManyInProgress : rateLimited)(subject);
}

const tooManyInProgress = perSubject((subject) => ({
  type: QUOTA_EXCEEDED,
  title: 'Too Many Requests',
  status: 429,
  error: 'too_many_in_progress',
  message: `Too many requests${subjectPhrase(subject)} are in progress. Wait for one of them to end.`,
}));

const rateLimited = perSubject((subject) => ({
  type: QUOTA_EXCEEDED,
  title: 'Too Many Requests',
  status: 429,
  error: 'rate_limited',
  message: `API rate limit exceeded${subjectPhrase(subject)}.`,
}));

/** One problem for each attribute that rules count by, which are few. */
function perSubject(make: (subject: string | undefined) => Problem) {
  const made = new Map<string | undefined, Problem>();
  return (subject: string | undefined): Problem => {
    const problem = made.get(subject) ?? make(subject);
    made.set(subject, problem);
    return problem;
  };
}

function subjectPhrase(subject: string | undefined): string {
  switch (subject) {
    case undefined:
      return '';
    case 'api_key':
      return ' for this key';
    case 'remote_address':
      return ' for this address';
    default:
      return ` for this ${subject.replaceAll('_', ' ')}`;
  }
}
