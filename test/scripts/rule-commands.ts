/** Runs a command of the `limiter` inside the test, with what it prints and how it ends. */
import type { Command } from 'commander';
import { vi } from 'vitest';
import { UsageError } from '../../scripts/command.ts';

export interface Ended {
  /** As `runCommand` would end the process. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function runLimiter(
  make: (finish: (exitCode: number) => void) => Command,
  ...args: readonly string[]
): Promise<Ended> {
  const [stdout, stderr]: [string[], string[]] = [[], []];
  const spies = [
    vi.spyOn(console, 'log').mockImplementation((line: unknown) => void stdout.push(String(line))),
    vi.spyOn(console, 'error').mockImplementation((line: unknown) => void stderr.push(String(line))),
  ];
  let code = 0;
  try {
    const program = make((exitCode) => {
      code = exitCode;
    }).configureOutput({ writeErr: (text) => void stderr.push(text) });
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    const isUsage =
      error instanceof UsageError || (error as { code?: string }).code?.startsWith('commander.');
    code = isUsage ? 2 : 1;
    stderr.push(error instanceof Error ? error.message : String(error));
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return { code, stdout: stdout.join('\n'), stderr: stderr.join('\n') };
}
