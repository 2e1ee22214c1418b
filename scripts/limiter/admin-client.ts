/**
 * The admin API as the commands see it: a question that is answered in the expected shape, or a sentence about what went wrong.
 *
 * Neither the token nor the body of a request is ever part of such a sentence.
 */
import * as z from 'zod/mini';
import { NO_API } from '../../src/admin/problems.ts';
import { formatPath, type Path } from '../../src/policy/problem.ts';
import { FailureError, UsageError } from '../command.ts';
import { plainText } from './text.ts';
import '../../src/admin/english.ts';

/** The slowest answer that is any good: the control plane itself gives up telling others after two seconds. */
const ANSWER_MS_MAX = 30_000;

export interface Question {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Below `/_limiter/v1`; names in it are encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
  /** Ends the question early. */
  readonly signal?: AbortSignal;
}

export interface Identity {
  readonly token: string;
  /** Who makes a change, for the audit; questions that change nothing need none. */
  readonly author?: string;
}

const problemSchema = z.object({
  error: z.string(),
  message: z.string(),
  errors: z._default(
    z.array(
      z.object({ path: z.string(), at: z.array(z.union([z.string(), z.number()])), message: z.string() }),
    ),
    [],
  ),
});

export type AdminProblem = z.output<typeof problemSchema>;

/** There was no answer that helps. */
export class AdminFailure extends FailureError {
  /** Absent when nothing answered. */
  readonly status: number | undefined;
  /** What the limiter itself said; absent when it was not the limiter that spoke. */
  readonly problem: AdminProblem | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    {
      status,
      problem,
      retryAfterMs,
    }: Partial<Pick<AdminFailure, 'status' | 'problem' | 'retryAfterMs'>> = {},
  ) {
    super(message);
    this.status = status;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the same question may be answered a little later. */
  get isPassing(): boolean {
    if (this.problem?.error === 'not_bound') return false;
    return this.status === undefined || this.status === 429 || this.status >= 500;
  }
}

export class AdminClient {
  /** As it was given, for messages. */
  readonly url: URL;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: URL, { token, author }: Identity) {
    // A header that cannot be sent would be quoted in the error.
    if (!/^[!-~]+$/.test(token))
      throw new UsageError(
        'LIMITER_ADMIN_TOKEN holds a space, a line end or another character that no token has.',
      );
    this.url = url;
    this.#headers = {
      Authorization: `Bearer ${token}`,
      ...(author !== undefined && { 'X-Limiter-Author': author }),
    };
  }

  /** Rejects with an `AdminFailure`. */
  async ask<Answer>(schema: z.ZodMiniType<Answer>, question: Question): Promise<Answer> {
    const { status, headers, text } = await this.#send(question);
    const body = parseJson(text);
    if (status < 200 || status > 299) throw this.#refusal({ status, headers, body });
    const answer = schema.safeParse(body);
    if (answer.success) return answer.data;
    const [issue] = answer.error.issues;
    const where =
      body === undefined ? 'it is no JSON' : `${formatPath((issue?.path ?? []) as Path)}: ${issue?.message}`;
    throw new AdminFailure(
      `${this.url.origin} does not answer as this limiter does (${where}): is --url right, and is it of this version?`,
      { status },
    );
  }

  async #send({ method, path, query = {}, body, signal }: Question) {
    const url = new URL(`/_limiter/v1${path}`, this.url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    const timeout = AbortSignal.timeout(ANSWER_MS_MAX);
    try {
      const response = await fetch(url, {
        method,
        headers: { ...this.#headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        // A redirect may lead the token astray, and makes a GET of what was none.
        redirect: 'manual',
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      });
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch (error) {
      if (signal?.aborted) throw new AdminFailure('Interrupted.');
      throw new AdminFailure(timeout.aborted ? this.#lateness(method) : this.#absence(error));
    }
  }

  #lateness(method: Question['method']): string {
    const doubt = method === 'GET' ? '' : ' Whether it did what it was asked is not known.';
    return `${this.url.origin} did not answer within ${ANSWER_MS_MAX / 1_000} seconds.${doubt}`;
  }

  #absence(error: unknown): string {
    return `Cannot reach ${this.url.origin} (${reasonOf(error)}): start the limiter there, or say where it is with --url or LIMITER_URL.`;
  }

  #refusal({ status, headers, body }: { status: number; headers: Headers; body: unknown }): AdminFailure {
    const retryAfterMs = readRetryAfter(headers.get('retry-after'));
    const problem = problemSchema.safeParse(body);
    if (problem.success)
      return new AdminFailure(sentenceOf(problem.data, status), {
        status,
        problem: problem.data,
        retryAfterMs,
      });
    const to = headers.get('location');
    const what =
      to !== null && status < 400
        ? `redirects to ${plainText(to)}: give that address as --url.`
        : `answers ${status}, and not as the limiter does: is --url right?`;
    return new AdminFailure(`${this.url.origin} ${what}`, { status, retryAfterMs });
  }
}

function sentenceOf({ message, errors }: AdminProblem, status: number): string {
  const lines = errors.map(({ path, at, message }) =>
    at.length === 0 ? `  ${message}` : `  ${path}: ${message}`,
  );
  return [`${message}${hintAbout(message, status)}`, ...lines].map(plainText).join('\n');
}

/** What the server cannot know. */
function hintAbout(message: string, status: number): string {
  if (status === 401) return ' What LIMITER_ADMIN_TOKEN holds is not the token of this server.';
  return message === NO_API.message ? ' (Without ADMIN_TOKEN a server has no admin API.)' : '';
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `fetch` itself says "fetch failed"; what failed is the cause. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } };
  return plainText(String(cause?.code ?? cause?.message ?? 'no connection'));
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
function readRetryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
