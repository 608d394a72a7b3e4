import { makeMetrics } from '../../src/base/metrics.ts';
import { Controller } from '../../src/controller/controller.ts';
import { makeAccountId } from '../../src/model/api-key.ts';
import { isEnded, type Job } from '../../src/model/job.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { admitCall, type CreditCall } from '../../src/store/access/admit-call.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { listOpen, readOpenings } from '../../src/store/jobs/open-work.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import type { RedisClient } from '../../src/store/redis/redis-client.ts';
import type { RecordStore } from '../../src/store/script.ts';
import type { LuaMutant } from '../mutation/lua-mutants.ts';
import { aDownload, anAccount } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { type Choices, type Owner, Scheduler, settle } from './scheduler.ts';
import { SimulatedCluster } from './simulated-cluster.ts';
import { jump, maxCallMs, SimulatedRecord, type SimulatedTime } from './simulated-record.ts';

type Account = Awaited<ReturnType<typeof anAccount>>;

interface Simulation {
  readonly client: RedisClient;
  readonly choices: Choices;
  /** Moves the timers of the process on. */
  readonly tick: (milliseconds: number) => void;
  readonly time: SimulatedTime;
  readonly mutant: LuaMutant | null;
}

const limits = {
  maxAttempts: 3,
  maxInterruptions: 3,
  maxQueueMs: 6 * 3_600_000,
  maxStoringMs: 24 * 3_600_000,
  maxAttemptMs: 3_600_000,
};
export const slots = 3;
const ticks = [100, 500, 2_000, 10_000, 60_000, 600_000];
/** Time that passes before everything that waits for it happens: no longer than the controllers' own steps. */
const stepMs = 10_000;
const times = { leaseMs: 60_000, renewMs: stepMs, fullPassMs: 30_000 };
/** Calls that may happen while a step of time passes. */
const maxCalls = 300;
const jumpMs = 2 * 3_600_000;
const metrics = makeMetrics();

/** The service as it runs: controllers on one record, with workers and files that outlive them, and callers. */
export class SimulatedService {
  readonly #given: Simulation;
  readonly #scheduler: Scheduler;
  readonly #record: SimulatedRecord;
  readonly #direct: RecordStore;
  readonly cluster = new SimulatedCluster();
  readonly accounts: Account[] = [];
  /** Ids of packs, oldest first. */
  readonly packs: string[] = [];
  /** Most jobs that had a slot at once. */
  mostActive = 0;
  /** Jobs that a caller was told of, and the status in which each was first seen at its end. */
  readonly told = new Set<string>();
  /** Those of them that have a webhook. */
  readonly withWebhook = new Set<string>();
  readonly #ended = new Map<string, string>();
  readonly #controllers: { readonly owner: Owner; readonly controller: Controller }[] = [];
  /** The API that callers reach; a restore ends it, and with it the calls in hand. */
  #api: Owner = { name: 'api', isDead: false, isPaused: false };
  #made = 0;
  #putBack: (() => Promise<void>) | null = null;
  #keptTold = new Set<string>();

  constructor(given: Simulation) {
    this.#given = given;
    this.#scheduler = new Scheduler(given.choices);
    this.#record = new SimulatedRecord(given.client, this.#scheduler, given.time, given.mutant);
    this.#direct = this.#record.direct();
  }

  get log(): readonly string[] {
    return this.#scheduler.log;
  }

  get mutated(): number {
    return this.#record.mutated;
  }

  get store(): RecordStore {
    return this.#direct;
  }

  async begin(): Promise<void> {
    const kinds = [{ credits: 4 }, { quota: 3, packs: [1, 1], weight: 2 }, { credits: 1, concurrency: 1 }];
    for (const [n, wanted] of kinds.entries()) {
      const accountId = makeAccountId(Buffer.alloc(16, n));
      this.accounts.push(await anAccount(this.#direct, { ...wanted, accountId }));
    }
    const queues = this.accounts.map(({ accountId }) => keys.packQueue(accountId));
    for (const queue of queues) this.packs.push(...(await this.store.connection.read(['ZRANGE', queue, '0', '-1'])));
    await this.#startController();
  }

  /** One event, chosen by the history: mostly a call that waits, else something that happens to the service. */
  async step(): Promise<void> {
    const { choices } = this.#given;
    if (choices.pick(10) < 7 && (await this.#scheduler.step())) return;
    const happenings = this.#happenings();
    const [what, happen] = happenings[choices.pick(happenings.length)]!;
    const told = await happen();
    this.#scheduler.log.push(typeof told === 'string' ? `${what}: ${told}` : what);
    await settle();
  }

  #happenings(): (readonly [string, () => unknown])[] {
    const { choices, time } = this.#given;
    const worker = () => this.cluster.advance(choices, this.#direct, false);
    return [
      ['time passes', () => this.#pass(ticks[choices.pick(ticks.length)]!, choices.pick(3) === 2)],
      ['time passes', () => this.#pass(ticks[choices.pick(3)]!, false)],
      ['a caller asks', () => this.#ask()],
      ['a caller asks', () => this.#ask()],
      ['a worker', worker],
      ['a worker', worker],
      ['a worker', worker],
      ['a hint', () => this.cluster.hint(choices)],
      ['a caller cancels', () => this.#cancel()],
      ['a worker', () => this.cluster.uploadLate(choices)],
      ['a controller starts', () => (this.#alive().length < 3 ? this.#startController() : 'no more')],
      ['a controller dies', () => this.#kill()],
      ['a controller hangs, or goes on', () => this.#pause()],
      ['the object store', () => this.#toggleObjects()],
      ['the clock jumps', () => jump(time, choices.pick(2) === 0 ? jumpMs : -jumpMs)],
      ['a backup', () => this.#keep()],
      ['a restore', () => this.#restore()],
    ];
  }

  /** Ends every fault and waits until all is done, as an hour without one would. */
  async finish(): Promise<void> {
    this.#scheduler.endFaults();
    this.cluster.isObjectStoreAway = false;
    for (const { owner } of this.#controllers) owner.isPaused = false;
    await this.#startController();
    for (let round = 0; round < 400; round++) {
      await this.#makeCalls();
      while ((await this.cluster.advance(this.#given.choices, this.#direct, true)) !== null) await settle();
      await this.#pass(stepMs, false);
      if (round % 5 === 4 && (await this.#isDone())) return;
    }
  }

  /** Returns the jobs that callers know, with their accounts. */
  async jobs(): Promise<(Job | null)[]> {
    return Promise.all([...this.told].map((id) => readJob(this.#direct, id)));
  }

  /** Final states change never: returns those that did. */
  async changedEnds(): Promise<string[]> {
    const now = new Map((await this.jobs()).map((job) => [job?.id, job?.status]));
    return [...this.#ended].filter(([id, status]) => now.get(id) !== status).map(([id, status]) => `${id}: ${status}`);
  }

  async #isDone(): Promise<boolean> {
    // Jobs of which nobody was told count, too: their answer was lost.
    const open = await Promise.all(this.accounts.map(({ accountId }) => listOpen(this.#direct, accountId)));
    return open.flat().length === 0 && this.cluster.workers.size === 0;
  }

  /** Lets time pass; meanwhile the calls happen, or, when the service `hangs`, none of them is answered in time. */
  async #pass(milliseconds: number, hangs: boolean): Promise<string> {
    const { time, tick } = this.#given;
    for (let left = milliseconds; left > 0; left -= stepMs) {
      const step = Math.min(left, stepMs);
      time.now += step;
      await this.#record.endLease();
      tick(step);
      await settle();
      if (!hangs) await this.#makeCalls();
      else if (step >= maxCallMs) await this.#scheduler.expire();
    }
    await this.#noteEnds();
    return `${milliseconds} ms${hangs ? ', without an answer' : ''}`;
  }

  async #makeCalls(): Promise<void> {
    for (let n = 0; n < maxCalls && (await this.#scheduler.step()); n++);
  }

  async #noteEnds(): Promise<void> {
    const { active } = await readOpenings(this.#direct);
    this.mostActive = Math.max(this.mostActive, active);
    for (const job of await this.jobs()) {
      if (job !== null && isEnded(job.status) && !this.#ended.has(job.id)) this.#ended.set(job.id, job.status);
    }
  }

  #alive() {
    return this.#controllers.filter(({ owner }) => !owner.isDead);
  }

  async #startController(): Promise<string> {
    const owner: Owner = { name: `controller ${this.#controllers.length + 1}`, isDead: false, isPaused: false };
    const runner = this.cluster.runnerFor(this.#scheduler, owner);
    const controller = new Controller({
      // A machine whose clock is off gets no lead while another one is right.
      store: this.#record.storeFor(owner, this.#given.choices.pick(4) === 3 ? 5_000 : 0),
      limits,
      objects: this.cluster.objectsFor(this.#scheduler, owner),
      runners: [runner],
      runnerOf: () => runner,
      shares: sharesOf(slots, 0, 30),
      times,
      metrics,
      traces: null,
      log: aLog().log,
    });
    this.#controllers.push({ owner, controller });
    void controller.start();
    return owner.name;
  }

  #chooseAlive() {
    const alive = this.#alive();
    return alive[this.#given.choices.pick(alive.length || 1)];
  }

  #kill(): string {
    const chosen = this.#chooseAlive();
    if (chosen === undefined) return 'none';
    chosen.owner.isDead = true;
    return chosen.owner.name;
  }

  #pause(): string {
    const chosen = this.#chooseAlive();
    if (chosen === undefined) return 'none';
    chosen.owner.isPaused = !chosen.owner.isPaused;
    return `${chosen.owner.name}${chosen.owner.isPaused ? '' : ' goes on'}`;
  }

  #toggleObjects(): string {
    this.cluster.isObjectStoreAway = !this.cluster.isObjectStoreAway;
    return this.cluster.isObjectStoreAway ? 'is away' : 'is back';
  }

  /** A caller asks for a download; now and then a call is repeated under its id, as an API does whose answer was lost. */
  #ask(): string {
    const { choices } = this.#given;
    const account = this.accounts[choices.pick(this.accounts.length)]!;
    const id = `00000000-0000-4000-8000-${String(++this.#made).padStart(12, '0')}`;
    const repeat = choices.pick(3) === 0 ? { key: `key ${choices.pick(3)}`, request: 'same' } : null;
    const receiver = `${account.accountId}@example.com/hook`;
    const webhook = choices.pick(2) === 0 ? { url: 'https://example.com/hook', receiver, authorization: '' } : null;
    const call: CreditCall = { id, valid: true, isOpen: true, repeat, work: { ...aDownload, webhook } };
    admitCall(this.#record.storeFor(this.#api), account, call).then(
      (answer) => {
        if (!('admitted' in answer)) return;
        this.told.add(answer.admitted);
        if (webhook !== null) this.withWebhook.add(answer.admitted);
      },
      () => {},
    );
    return id.slice(-4);
  }

  #cancel(): string {
    const ids = [...this.told];
    const id = ids[this.#given.choices.pick(ids.length || 1)];
    if (id === undefined) return 'none';
    const store = this.#record.storeFor(this.#api);
    const cancel = async () => {
      const job = await readJob(store, id);
      if (job !== null) await cancelJob(store, job);
    };
    // A call that is lost is what a history is made of.
    void cancel().catch(() => {});
    return id.slice(-4);
  }

  async #keep(): Promise<void> {
    this.#putBack = await this.#record.keep();
    this.#keptTold = new Set(this.told);
  }

  /** Every process is stopped before a restore; callers do not get back what was asked for since. */
  async #restore(): Promise<string> {
    if (this.#putBack === null) return 'none';
    for (const { owner } of this.#controllers) owner.isDead = true;
    this.#api.isDead = true;
    this.#api = { ...this.#api, isDead: false };
    await this.#putBack();
    this.#putBack = null;
    this.told.clear();
    for (const id of this.#keptTold) this.told.add(id);
    this.#ended.clear();
    await this.#noteEnds();
    return 'done';
  }
}
