import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { failures } from '../../src/base/errors.ts';
import { type Outcome, readVerdict } from '../../src/model/outcome.ts';
import type { SandboxMode } from '../../src/worker/choose-sandbox.ts';
import { startGateway } from '../support/gateway.ts';
import { makeRandom } from '../support/random.ts';
import { aFolder } from '../support/redis.ts';
import { seed } from '../support/seed.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { processesOf } from '../support/worker.ts';

type Victim = 'worker' | 'parent' | 'proxy';

const isLong = process.env.ROUNDS !== undefined;
const rounds = isLong ? 40 : 4;
/** The first kill of each case meets a worker that starts, and on a quick machine tries its sandbox. */
const startMilliseconds = 400;
/** The clip takes so long at the source's pace. */
const jobMilliseconds = 3500;
const bytesPerSecond = 100_000;
/** Limit of a job that loses its way to egress: it waits for that as long as it may. */
const waitSeconds = 5;

describe(`A part of a job that is killed at a random moment (SEED=${seed})`, function () {
  this.timeout(isLong ? 1_800_000 : 300_000);
  let source: Source;
  const random = makeRandom(seed);

  before(async () => {
    source = await startSource();
  });
  after(() => source.stop());

  for (const sandbox of ['required', 'off'] as const) {
    for (const victim of ['worker', 'parent', 'proxy'] as const) {
      it(`leaves no process, no folder and the right outcome when it is the ${victim} (sandbox ${sandbox})`, async () => {
        for (let round = 0; round < rounds; round++) {
          const after = random() * (round === 0 ? startMilliseconds : jobMilliseconds);
          const outcomes = await killDuring(source, victim, after, sandbox);
          expect(
            outcomes.filter((outcome) => !isRight(outcome, victim)),
            `after ${after} ms`,
          ).to.deep.equal([]);
          expect(outcomes.length, `after ${after} ms`).to.be.at.most(1);
        }
      });
    }
  }
});

/** A killed worker says nothing, one without its parent may still say that it leaves, one without a proxy that this may pass. */
function isRight(outcome: Outcome | null, victim: Victim): boolean {
  switch (outcome?.is) {
    case 'done':
      return true;
    case 'interrupted':
      return victim === 'parent';
    case 'failed':
      return victim === 'proxy' && failures[outcome.code].retryable && failures[outcome.code].blame !== 'caller';
    default:
      return false;
  }
}

/** Runs a real job, kills one part of it, waits until all is gone, and gives what the gateway was told. */
async function killDuring(
  source: Source,
  victim: Victim,
  milliseconds: number,
  sandbox: SandboxMode,
): Promise<(Outcome | null)[]> {
  const { folder, remove } = aFolder();
  const work = join(folder, 'work');
  const query = `${source.url}/rate/${bytesPerSecond}/clip.mp4`;
  const args = { query, download_type: 'audio_video', video_quality: 'best', video_format: 'mp4' };
  const limits = victim === 'proxy' ? { seconds: waitSeconds } : {};
  const gateway = await startGateway({ folder, order: { endpoint: 'video', args }, limits });
  const proxy = await startPart('proxy', source.host);
  const options = { folder, gateway: gateway.address, egress: proxy.line, sandbox, media: 'real' };
  const parent = await startPart('parent', JSON.stringify(options));
  try {
    await pause(milliseconds);
    kill({ worker: Number(parent.line), parent: Number(parent.process.pid), proxy: Number(proxy.process.pid) }[victim]);
    await until(() => !existsSync(`/proc/${parent.line}`), 40, 'the worker has ended');
    // The filter of a worker that was killed while it tried its sandbox stays until the next start of `trawl up` clears the folder.
    const excused = victim === 'worker' ? `seccomp-${parent.line}` : null;
    const left = () => (existsSync(work) ? readdirSync(work).filter((name) => name !== excused) : []);
    await until(
      () => left().length === 0,
      10,
      () => `no folder is left but ${left()}`,
    );
    kill(Number(parent.process.pid));
    await until(() => processesOf(folder).length === 0, 10, `no process is left but ${processesOf(folder)}`);
    return gateway.verdicts.map(readVerdict);
  } finally {
    kill(Number(parent.process.pid));
    kill(Number(proxy.process.pid));
    await gateway.stop();
    remove();
  }
}

async function startPart(part: string, argument: string): Promise<{ process: ChildProcess; line: string }> {
  const file = join(import.meta.dirname, '..', 'support', 'killable-process.ts');
  const child = spawn(process.execPath, [file, part, argument], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = await once(child.stdout, 'data');
  return { process: child, line: String(line).trim() };
}

function kill(id: number): void {
  try {
    process.kill(id, 'SIGKILL');
  } catch {
    // The process has ended before.
  }
}
