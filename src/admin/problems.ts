/**
 * The admin API's errors: problem details (RFC 9457) that say what was wrong, where, and what to do.
 */
import type { Problem } from '../policy/problem.ts';
import { formatPath } from '../policy/problem.ts';

export interface ProblemDetails {
  readonly status: number;
  /** A word for programs. */
  readonly error: string;
  /** A sentence for people. */
  readonly message: string;
  readonly errors?: readonly Problem[];
  readonly headers?: Readonly<Record<string, string>>;
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  503: 'Service Unavailable',
};

/** Ends a handler with this answer. */
export class ProblemError extends Error {
  readonly details: ProblemDetails;

  constructor(details: ProblemDetails) {
    super(details.message);
    this.details = details;
  }
}

export function problem(details: ProblemDetails): Response {
  const { status, error, message, errors, headers } = details;
  const body = {
    type: 'about:blank',
    title: TITLES[status],
    status,
    error,
    message,
    ...(errors && { errors: errors.map(shownProblem) }),
  };
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store', ...headers },
  });
}

/** A mistake in the whole of what was sent has no place of its own. */
export function shownProblem({ path, message }: Problem) {
  return { ...(path.length > 0 && { path: formatPath(path) }), at: path, message };
}

export function notFound(message: string): ProblemDetails {
  return { status: 404, error: 'not_found', message };
}

export const NO_API: ProblemDetails = notFound(
  'Paths below /_limiter/ are the limiter’s own; this is none of them. GET /_limiter/health is one.',
);

export const UNAVAILABLE: ProblemDetails = {
  status: 503,
  error: 'control_plane_unavailable',
  message:
    'The control plane did not answer. Nothing was changed that is not shown as changed; try again shortly.',
  headers: { 'Retry-After': '1' },
};
