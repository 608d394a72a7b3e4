import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { expect } from 'chai';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { invited, openBrowser } from '../support/browser-session.ts';
import { freePort } from '../support/free-port.ts';
import { anAccount, anotherKey, storeOf, type TestStore } from '../support/record.ts';
import { startTestServer, type TestRecord } from '../support/redis.ts';
import { type RoleProcess, spawnRole, startRole } from '../support/role-process.ts';

const film = 'https://films.example/film.mp4';

describe('the dashboard as a role of its own', () => {
  let redis: TestRecord;
  let store: TestStore;
  let shared: Record<string, string>;
  let [dashboard, api]: RoleProcess[] = [];
  let portOfApi: number;
  before(async () => {
    redis = await startTestServer();
    store = storeOf(redis.connection);
    shared = {
      ...{ TRAWL_REDIS_URL: redis.url, TRAWL_SECRET: randomBytes(32).toString('base64') },
      // Nothing asks for metadata or files.
      ...{ TRAWL_PUBLIC_URL: 'http://trawl.test', TRAWL_INSPECTOR_ADDRESS: 'http://127.0.0.1:9', TRAWL_OBJECTS: 's3' },
      ...{ TRAWL_S3_BUCKET: 'none', TRAWL_S3_ENDPOINT: 'http://127.0.0.1:9', TRAWL_S3_REGION: 'none' },
      ...{ AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' },
    };
    portOfApi = await freePort();
    [dashboard, api] = await Promise.all([
      startRole('dashboard', shared),
      startRole('api', {
        ...{ ...shared, TRAWL_PORT: String(portOfApi) },
        ...{ TRAWL_DASHBOARD_PORT: 'none', TRAWL_DASHBOARD_URL: 'http://dashboard.test' },
      }),
    ]);
  });
  after(async () => {
    await Promise.all([dashboard?.end('SIGKILL'), api?.end('SIGKILL')]);
    await redis.stop();
  });

  it('signs people in, shows its pages and starts jobs of their account, without the public API', async () => {
    const { accountId } = await anAccount(store, { credits: 5 });
    const browser = openBrowser(dashboard!.url);
    expect((await browser.ask('GET', '/')).text).to.include('<title>trawl</title>');
    expect((await browser.signIn(await invited(store, accountId))).status).to.equal(200);
    const { status, json } = await browser.ask('POST', '/api/jobs', { endpoint: 'video', query: film });
    expect(status, JSON.stringify(json)).to.equal(202);
    expect(await readJob(store, json.job_id)).to.include({ account: accountId, status: 'QueuedJob' });
    expect((await browser.ask('GET', `/api/jobs/${json.job_id}`)).status).to.equal(200);
    const key = await anotherKey(store, accountId);
    const answer = await fetch(`${dashboard!.url}/v1/usage`, { headers: { 'x-api-key': key } });
    expect(answer.status, 'the public API').to.equal(404);
  });

  it('is ready by its own probe, and counts its own requests', async () => {
    const { text } = await dashboard!.probe('/metrics');
    expect(text).to.match(/^trawl_http_requests_total\{route="dashboard api",status="200"\} [1-9]/m);
    expect(await dashboard!.probe('/readyz')).to.include({ status: 200 });
  });

  it('leaves the API without a second port', async () => {
    const { accountId } = await anAccount(store, { credits: 5 });
    const key = await anotherKey(store, accountId);
    const answer = await fetch(`http://127.0.0.1:${portOfApi}/v1/usage`, { headers: { 'x-api-key': key } });
    expect(answer.status).to.equal(200);
    const { text } = await api!.probe('/metrics');
    expect(text).not.to.include('route="dashboard');
    expect(listeningPorts(api!.process.pid!)).to.have.members([portOfApi, Number(api!.probeAddress.split(':')[1])]);
  });

  it('needs a port itself, and the API without one needs the address of the other', async () => {
    const refused = async (...given: Parameters<typeof spawnRole>) => {
      const role = await spawnRole(...given);
      expect(await role.ended, role.output()).to.equal(1);
      return role.output();
    };
    const none = { ...shared, TRAWL_DASHBOARD_PORT: 'none' };
    expect(await refused('dashboard', none)).to.include('TRAWL_DASHBOARD_PORT must be a port here');
    expect(await refused('api', none)).to.include('TRAWL_DASHBOARD_PORT=none needs TRAWL_DASHBOARD_URL');
  });

  it('ends on SIGTERM', async () => {
    expect(await dashboard!.end('SIGTERM')).to.equal(0);
  });
});

/** The TCP ports at which a process listens. */
function listeningPorts(pid: number): number[] {
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        // It was closed meanwhile.
        return '';
      }
    }),
  );
  const rows = ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n').slice(1),
  );
  const listening = rows.map((row) => row.trim().split(/\s+/)).filter(([, , , state]) => state === '0A');
  const ours = listening.filter((fields) => own.has(`socket:[${fields[9]}]`));
  return ours.map(([, local]) => Number.parseInt(local!.split(':')[1]!, 16));
}
