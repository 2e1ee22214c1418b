/** `limiter`: what one does with rule files before they are in force, and with a running limiter through its admin API. */
import { command, runCommand } from './command.ts';
import { auditCommand } from './limiter/admin/audit.ts';
import { checkCommand } from './limiter/admin/check.ts';
import { clampCommand, clampsCommand, unclampCommand } from './limiter/admin/clamps.ts';
import { inspectCommand, resetCommand } from './limiter/admin/counters.ts';
import { keysCommand } from './limiter/admin/keys.ts';
import { publishCommand } from './limiter/admin/publish.ts';
import { publishedDiffCommand } from './limiter/admin/published.ts';
import { activateCommand, rollbackCommand, versionsCommand } from './limiter/admin/versions.ts';
import { explainCommand } from './limiter/explain.ts';
import { replayCommand } from './limiter/replay.ts';
import { validateCommand } from './limiter/validate.ts';

const HELP = `
From \`publish\` on, commands ask a running limiter: LIMITER_URL (or --url) says where it is, and LIMITER_ADMIN_TOKEN holds its admin token.

Every command ends with 0 when it did its work, 1 when a file or the server said no, 2 when it was asked wrongly.`;

async function main(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  const finish = (code: number) => {
    exitCode = code;
  };
  const commands = [
    ...[validateCommand(finish), explainCommand(finish), publishedDiffCommand(finish), replayCommand(finish)],
    ...[publishCommand(), versionsCommand(), activateCommand(), rollbackCommand()],
    ...[clampCommand(), unclampCommand(), clampsCommand(), keysCommand(finish)],
    ...[checkCommand(), inspectCommand(), resetCommand(), auditCommand()],
  ];
  const program = command('limiter', 'Rule files, and the limiter that they are in force in.').addHelpText(
    'after',
    HELP,
  );
  for (const each of commands) program.addCommand(each);
  await program.parseAsync(argv, { from: 'user' });
  return exitCode;
}

/** Whoever reads the output has read enough, as `head` does. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

await runCommand(() => main(process.argv.slice(2)));
