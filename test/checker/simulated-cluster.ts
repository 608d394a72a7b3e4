import { refuse } from '../../src/base/errors.ts';
import type { Metadata } from '../../src/model/metadata.ts';
import type { Seen } from '../../src/model/next.ts';
import type { Delivered } from '../../src/model/outcome.ts';
import { type Outcome, objectPrefix } from '../../src/model/outcome.ts';
import type { StoredObject } from '../../src/objects/object-store.ts';
import { attemptNumberOf, jobIdOf, type Runner } from '../../src/runners/runner.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { recordVerdict } from '../../src/store/jobs/record-verdict.ts';
import type { RecordStore } from '../../src/store/script.ts';
import type { Choices, Owner, Scheduler } from './scheduler.ts';

interface SimulatedWorker {
  readonly name: string;
  seen: Seen;
  /** The file that it was permitted to upload; a permit outlives its attempt. */
  permitted: Delivered | null;
}

const metadata = { title: 'A film' } as Metadata;
/** Ends of a worker: what it says, and whether the file is there. */
const ends = [
  'honest',
  'honest',
  'honest',
  'failed',
  'killed',
  'no file',
  'other bytes',
  'other key',
  'silent',
] as const;

/** Workers and files of the history. They survive every process of the service. */
export class SimulatedCluster {
  readonly workers = new Map<string, SimulatedWorker>();
  readonly files = new Map<string, StoredObject>();
  readonly #watchers: ((name: string) => void)[] = [];
  /** Workers that were stopped, and may upload once more. */
  readonly #zombies: SimulatedWorker[] = [];
  isObjectStoreAway = false;

  /** Runner of a process: every call is an event. */
  runnerFor(scheduler: Scheduler, owner: Owner): Runner {
    const ask = <T>(what: string, run: () => T) =>
      scheduler.call(
        owner,
        what,
        async () => run(),
        () => refuse('unavailable'),
        true,
      );
    return {
      start: ({ name }) => ask(`start ${name}`, () => this.#start(name)),
      stop: (name) => ask(`stop ${name}`, () => this.#stop(name)),
      see: (name) => ask(`see ${name}`, (): Seen => this.workers.get(name)?.seen ?? { is: 'absent' }),
      list: (jobId) =>
        ask('list', () => [...this.workers.keys()].filter((name) => jobId === undefined || jobIdOf(name) === jobId)),
      watch: (changed) => {
        this.#watchers.push((name) => {
          if (!owner.isDead && !owner.isPaused) changed(name);
        });
        return () => {};
      },
      close: async () => [],
    };
  }

  /** Object store of a process. */
  objectsFor(scheduler: Scheduler, owner: Owner) {
    const ask = <T>(what: string, run: () => T) => {
      const answer = async () => {
        if (this.isObjectStoreAway) throw refuse('unavailable');
        return run();
      };
      return scheduler.call(owner, what, answer, () => refuse('unavailable'), true);
    };
    return {
      finish: (key: string) => ask(`finish ${key}`, () => false),
      see: (key: string) => ask(`see ${key}`, () => this.files.get(key) ?? null),
      keep: (key: string) => ask(`keep ${key}`, () => undefined),
      remove: (prefix: string) =>
        ask(`remove ${prefix}`, () => {
          for (const key of [...this.files.keys()]) if (key.startsWith(prefix)) this.files.delete(key);
        }),
    };
  }

  /** Tells the controllers that a worker may have changed: a hint that may also be untrue. */
  hint(choices: Choices): void {
    const names = [...this.workers.keys()];
    const name = names[choices.pick(names.length || 1)];
    if (name !== undefined) for (const changed of this.#watchers) changed(name);
  }

  /** Takes one worker a step on. `isHonest`: it ends as a good worker does. */
  async advance(choices: Choices, store: RecordStore, isHonest: boolean): Promise<string | null> {
    const able = [...this.workers.values()].filter(({ seen }) => seen.is !== 'ended');
    const worker = able[choices.pick(able.length || 1)];
    if (worker === undefined) return null;
    if (worker.seen.is === 'waiting') {
      worker.seen = { is: 'running' };
      return `${worker.name} runs`;
    }
    const end = isHonest ? 'honest' : ends[choices.pick(ends.length)]!;
    await this.#end(worker, end, store);
    return `${worker.name} ends: ${end}`;
  }

  /** A worker that was stopped uploads its file with the permit that it still has. */
  uploadLate(choices: Choices): string | null {
    const zombie = this.#zombies[choices.pick(this.#zombies.length || 1)];
    if (!zombie?.permitted) return null;
    this.#store(zombie.permitted);
    return `${zombie.name} uploads after it was stopped`;
  }

  #start(name: string): void {
    if (!this.workers.has(name))
      this.workers.set(name, { name, seen: { is: 'waiting', reason: null }, permitted: null });
  }

  #stop(name: string): void {
    const worker = this.workers.get(name);
    if (worker !== undefined) this.#zombies.push(worker);
    this.workers.delete(name);
  }

  #store({ key, bytes, sha256 }: Delivered): void {
    this.files.set(key, { bytes, checksum: sha256 });
  }

  /** As the gateway does, uploads and verdicts of attempts that are over are refused. */
  async #end(worker: SimulatedWorker, end: (typeof ends)[number], store: RecordStore): Promise<void> {
    const [jobId, attempt] = [jobIdOf(worker.name), attemptNumberOf(worker.name)];
    const key = `${objectPrefix(jobId, attempt)}media.mp4`;
    const file: Delivered = { key, bytes: 100 + attempt, sha256: 'a'.repeat(64), content_type: 'video/mp4' };
    const job = await readJob(store, jobId);
    if (job?.attempt === attempt) worker.permitted = file;
    const isStored = ['honest', 'silent', 'other key'].includes(end) && !this.isObjectStoreAway;
    if (isStored && worker.permitted !== null) this.#store(file);
    if (end === 'other bytes') this.files.set(key, { bytes: 1, checksum: null });
    const named = end === 'other key' ? { ...file, key: `${objectPrefix(jobId, attempt + 1)}media.mp4` } : file;
    const verdict: Outcome =
      end === 'failed' ? { is: 'failed', code: 'source_error' } : { is: 'done', metadata, delivered: named };
    if (end === 'killed') worker.seen = { is: 'ended', outcome: { is: 'interrupted', reason: 'killed' } };
    else worker.seen = { is: 'ended', outcome: { is: 'failed', code: 'worker_failed' } };
    if (end !== 'killed' && end !== 'silent') await recordVerdict(store, jobId, attempt, verdict);
  }
}
