import { expect } from 'chai';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import {
  type ClientCommand,
  type ClientDriver,
  type ClientName,
  clientNames,
  startClientDriver,
} from './client-driver.ts';
import { type FaultyLink, startFaultyLink } from './faulty-link.ts';
import { freePort } from './free-port.ts';
import { type Customer, makeService, type Service } from './service.ts';
import { type Source, startSource } from './source-server.ts';

interface Downloaded {
  readonly job_id: string;
  readonly sha256: string;
  readonly bytes: string;
  readonly stages: readonly string[];
}

/** One client of a service, which it reaches by a link of its own, with a source and a new account. */
export interface ClientScene {
  readonly films: Source;
  readonly link: FaultyLink;
  readonly customer: Customer;
  readonly film: string;
  readonly run: (
    command: Partial<ClientCommand>,
    wanted?: Partial<ClientCommand['service']>,
  ) => ReturnType<ClientDriver['run']>;
  /** Interrupts the command that runs, as Ctrl-C does. */
  readonly interrupt: () => void;
}

/** A service with every client, for the tests of one `describe`. */
export function makeClientScenes() {
  const service: Service = makeService({ TRAWL_WORKERS: '3' });
  const parts = new Map<ClientName, Pick<ClientScene, 'films' | 'link'> & { readonly driver: ClientDriver }>();
  let publicUrl: string;
  let own = '';
  const start = async () => {
    const port = await freePort();
    own = `http://127.0.0.1:${port}`;
    // Links to files lead through a faulty link too.
    await service.start({ TRAWL_PUBLIC_URL: publicUrl, TRAWL_PORT: String(port) });
    for (const { link } of parts.values()) link.lead(own);
  };
  before(async () => {
    const linkOfJob = new Map();
    for (const name of clientNames) {
      const [films, link] = await Promise.all([startSource(), startFaultyLink(linkOfJob)]);
      parts.set(name, { films, link, driver: startClientDriver(name) });
      publicUrl = link.url;
    }
    await start();
  });
  after(async () => {
    await Promise.all([...parts.values()].map(({ driver }) => driver.stop()));
    await service.close();
    for (const { films, link } of parts.values()) await Promise.all([films.stop(), link.stop()]);
  });

  const sceneOf = async (name: ClientName): Promise<ClientScene> => {
    const { films, link, driver } = parts.get(name)!;
    link.mend();
    const customer = await service.aCustomer();
    const film = `${films.url}/films/clip.mp4`;
    const run: ClientScene['run'] = (command, wanted = {}) => {
      const access = { url: link.url, key: customer.key, patienceSeconds: 60, ...wanted };
      return driver.run({ verb: 'download', url: film, ...command, service: access });
    };
    return { films, link, customer, film, run, interrupt: driver.interrupt };
  };
  const jobsOf = ({ account }: Customer) =>
    service.withStore(
      async (store) => (await listJobs(store, account, { status: undefined, limit: 100, after: null })).jobs,
    );
  /** One job, one charge, and the file that the record knows. */
  const expectOne = async ({ value, error }: Awaited<ReturnType<ClientScene['run']>>, customer: Customer) => {
    expect(error).to.equal(undefined);
    const file = value as Downloaded;
    const jobs = await jobsOf(customer);
    expect(jobs.map(({ id, status }) => [id, status])).to.deep.equal([[file.job_id, 'CompletedJob']]);
    expect([file.bytes, file.sha256]).to.deep.equal([jobs[0]!.delivered!.sha256, file.bytes]);
    expect(file.stages.at(-1)).to.equal('CompletedJob');
    await service.checkLedger(customer.account, jobs);
    return file;
  };
  /** Has every client behave, all at once, because most of the time is waiting; each has a verdict of its own. */
  const inEach = (title: string, behave: (scene: ClientScene) => Promise<void>) => {
    describe(title, () => {
      const verdicts = new Map<ClientName, Promise<void>>();
      before(async () => {
        for (const name of clientNames) verdicts.set(name, sceneOf(name).then(behave));
        await Promise.allSettled(verdicts.values());
      });
      for (const name of clientNames) it(`${title}, in ${name}`, () => verdicts.get(name));
    });
  };
  return { service, start, sceneOf, jobsOf, expectOne, inEach, address: () => own };
}
