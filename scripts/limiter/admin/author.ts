/** Who makes a change, as the audit is told. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const LENGTH_MAX = 128;
const GIT_MS_MAX = 2_000;

/** The first of those there are that has a character to show; a header holds printable ASCII alone. */
export async function authorOf(given: string | undefined): Promise<string> {
  const { LIMITER_AUTHOR, USER } = process.env;
  return reduce(given) || reduce(LIMITER_AUTHOR) || reduce(await gitName()) || reduce(USER) || 'unknown';
}

/** `Zoë` is `Zoe`. */
function reduce(name: string | undefined): string {
  return (name ?? '')
    .normalize('NFKD')
    .replace(/[^\x20-\x7e]/g, '')
    .slice(0, LENGTH_MAX)
    .trim();
}

/** Nothing where there is no git, or no name in it. */
async function gitName(): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)('git', ['config', 'user.name'], { timeout: GIT_MS_MAX });
    return stdout;
  } catch {
    return undefined;
  }
}
