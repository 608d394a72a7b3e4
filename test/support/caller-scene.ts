import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { type CallerCommand, startCommand } from './caller.ts';
import { type FaultyLink, startFaultyLink } from './faulty-link.ts';
import { freePort } from './free-port.ts';
import { type Customer, makeService, type Service } from './service.ts';
import { type Source, startSource } from './source-server.ts';

/** A caller who reaches a service through a link with faults; each test has a customer and a folder of its own. */
export interface CallerScene {
  readonly service: Service;
  readonly films: Source;
  readonly link: FaultyLink;
  readonly customer: Customer;
  readonly folder: string;
  /** Settings of the customer's commands. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts the service anew after it was stopped. */
  start(): Promise<void>;
  /** Runs `trawl get` in the folder; it is killed when the test ends before it. */
  run(args: readonly string[], env?: Readonly<Record<string, string>>, input?: string): CallerCommand;
  /** Lists the customer's jobs. */
  jobs(): ReturnType<typeof readJobs>;
  /** Fails unless each of these jobs that completed is charged once. */
  checkCharges(): Promise<void>;
}

/** Sets a scene up for the tests of a suite, with hooks of Mocha. */
export function setUpCaller(): CallerScene {
  const service = makeService({ TRAWL_WORKERS: '2' });
  const started: CallerCommand[] = [];
  let films: Source;
  let link: FaultyLink;
  let customer: Customer;
  let folder: string;
  const start = async () => {
    const port = await freePort();
    // Links to files lead through the faulty link too.
    await service.start({ TRAWL_PUBLIC_URL: link.url, TRAWL_PORT: String(port) });
    link.lead(`http://127.0.0.1:${port}`);
  };
  const jobs = () => readJobs(service, customer.account);
  before(async () => {
    [films, link] = await Promise.all([startSource(), startFaultyLink()]);
    await start();
  });
  after(async () => {
    await service.close();
    await link.stop();
    await films.stop();
  });
  beforeEach(async () => {
    customer = await service.aCustomer();
    folder = mkdtempSync(join(service.folder, 'caller-'));
  });
  afterEach(async () => {
    link.mend();
    for (const { process, ended } of started.splice(0)) {
      process.kill('SIGKILL');
      await ended;
    }
  });
  return {
    ...{ service, start, jobs },
    get films() {
      return films;
    },
    get link() {
      return link;
    },
    get customer() {
      return customer;
    },
    get folder() {
      return folder;
    },
    get env() {
      return { TRAWL_API_URL: link.url, TRAWL_API_KEY: customer.key };
    },
    run(args, env = {}, input = '') {
      const command = startCommand(['get', ...args], folder, { ...this.env, ...env }, input);
      started.push(command);
      return command;
    },
    checkCharges: async () => service.checkLedger(customer.account, await jobs()),
  };
}

function readJobs(service: Service, accountId: string) {
  return service.withStore(
    async (store) => (await listJobs(store, accountId, { status: undefined, limit: 100, after: null })).jobs,
  );
}
