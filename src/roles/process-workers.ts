import type { Log } from '../base/log.ts';
import type { Seal } from '../base/seal.ts';
import { makeToken, readToken } from '../controller/attempt-token.ts';
import { openProcessRunner } from '../runners/process-runner.ts';
import type { OpenWorkers } from './build-controller.ts';

/** What worker processes are started with. */
export interface ProcessWorkersOptions {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly seal: Pick<Seal, 'sign' | 'verify'>;
  readonly log: Log;
}

/** Runs workers as processes of this machine, each with a token that we sealed. */
export function openProcessWorkers({ command, env, seal, log }: ProcessWorkersOptions): OpenWorkers {
  const [program, ...words] = command;
  return async () => ({
    runner: openProcessRunner({
      command: [program, ...words, 'worker'],
      ...{ env, log: log.with({ part: 'process runner' }) },
      tokenOf: (attempt) => makeToken(attempt, seal.sign),
    }),
    attemptOf: async (token) => readToken(token, seal.verify),
  });
}
