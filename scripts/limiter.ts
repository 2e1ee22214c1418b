/** `limiter`: what one does with rule files before they are in force. */
import { command, runCommand } from './command.ts';
import { explainCommand } from './limiter/explain.ts';
import { validateCommand } from './limiter/validate.ts';

async function main(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  const finish = (code: number) => {
    exitCode = code;
  };
  const program = command('limiter', 'Checks rule files, and explains what they decide.')
    .addCommand(validateCommand(finish))
    .addCommand(explainCommand(finish));
  await program.parseAsync(argv, { from: 'user' });
  return exitCode;
}

await runCommand(() => main(process.argv.slice(2)));
