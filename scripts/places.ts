/** Places that a flag names: whether they can be written is found out before any work is done for them. */
import { access, constants, mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { UsageError } from './command.ts';

/** Makes a folder and those above it, one by one: Node's own way of doing that never ends on a file system that has no new folders. */
export async function makeFolder(flag: string, path: string): Promise<void> {
  if (path === '') throw new UsageError(`${flag} needs the name of a folder`);
  const missing: string[] = [];
  let at = resolve(path);
  while (!(await exists(at))) {
    missing.unshift(at);
    at = dirname(at);
  }
  await expectFolder(`${flag} ${path}`, at);
  try {
    for (const folder of missing) await mkdir(folder);
  } catch (error) {
    throw new UsageError(`${flag} ${path} cannot be made: ${(error as Error).message}`);
  }
}

/** A file that is written once the work is done; its folder has to be there. */
export async function expectWritable(flag: string, path: string): Promise<void> {
  const named = `${flag} ${path}`;
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) throw new UsageError(`${named} is a folder`);
  if (found === undefined) return expectFolder(named, dirname(resolve(path)));
  await expectAccess(named, path);
}

async function expectFolder(named: string, folder: string): Promise<void> {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined) throw new UsageError(`${named}: there is no folder ${folder}`);
  if (!found.isDirectory()) throw new UsageError(`${named}: ${folder} is not a folder`);
  await expectAccess(named, folder);
}

async function expectAccess(named: string, path: string): Promise<void> {
  await access(path, constants.W_OK).catch(() => {
    throw new UsageError(`${named}: ${path} may not be written`);
  });
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
