/**
 * What an admin request brings along, read once and checked: nothing larger than it may be, and every mistake at its place.
 */
import type * as z from 'zod/mini';
import type { Path } from '../policy/problem.ts';
import { ProblemError } from './problems.ts';

/** Rejects with a problem: too large, or no JSON. */
export async function readJson(request: Request, bytesMax: number): Promise<unknown> {
  const bytes = await readBytes(request, bytesMax);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes));
  } catch {
    throw new ProblemError({
      status: 400,
      error: 'malformed_json',
      message: 'The body is no JSON in UTF-8.',
    });
  }
}

async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array> {
  // What says that it is too large is not read at all.
  if (Number(request.headers.get('content-length')) > bytesMax) throw tooLarge(bytesMax);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength;
    if (length > bytesMax) throw tooLarge(bytesMax);
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

function tooLarge(bytesMax: number): ProblemError {
  return new ProblemError({
    status: 413,
    error: 'body_too_large',
    message: `The body has more than ${bytesMax} bytes, which is the most that this path takes.`,
  });
}

/** Rejects with a problem that lists every mistake. */
export function parse<Schema extends z.ZodMiniType>(
  schema: Schema,
  input: unknown,
  what: string,
): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const errors = result.error.issues.map(({ path, message }) => ({ path: path as Path, message }));
  throw new ProblemError({
    status: 422,
    error: 'invalid_request',
    message: `The ${what} is not what this path takes.`,
    errors,
  });
}

/** Query parameters as text; one that is there twice counts with its last. */
export function queryOf(request: Request): Readonly<Record<string, string>> {
  return Object.fromEntries(new URL(request.url).searchParams);
}
