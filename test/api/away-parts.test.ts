import { expect } from 'chai';
import { refuseWithout } from '../../src/base/errors.ts';
import { askInspector } from '../../src/roles/inspector-client.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { invited, openBrowser } from '../support/browser-session.ts';
import { film } from '../support/calls.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { endJob } from '../support/job-steps.ts';

const maxLines = 10;

describe('the log of an API that answers 503', () => {
  let api: TestApi;
  let caller: ApiCaller;
  const begin = async (change: Parameters<typeof startApi>[1]) => {
    api = await startApi({}, change);
    caller = await api.addCaller();
  };
  afterEach(() => api.stop());

  const askMetadata = async () => {
    const answer = await api.get('/v1/media/metadata', caller.key, { query: film });
    expect(answer.status).to.equal(503);
  };
  const told = () => api.lines.map((line) => JSON.parse(line)).filter(({ text }) => text.includes('answered 503'));
  const askFile = async () => {
    const { job_id } = (await api.get('/v1/video/download', caller.key, { query: film })).json;
    await endJob(api.store, job_id);
    const link = new URL((await api.get(`/v1/jobs/${job_id}`, caller.key)).json.result.response);
    expect((await api.get(link.pathname + link.search)).status).to.equal(503);
  };
  const withoutFiles: Parameters<typeof startApi>[1] = (parts) => {
    const open = () => Promise.reject(refuseWithout('object store', new Error('S3 is away')));
    return { ...parts, objects: { ...parts.objects, open } };
  };
  const inspectorAway = askInspector({ path: '/nowhere/inspector.sock' });

  it('names the route and the inspector that takes no connection, ten times a minute', async () => {
    await begin((parts) => ({ ...parts, inspector: inspectorAway }));
    for (let n = 0; n < maxLines + 2; n++) await askMetadata();
    const lines = told();
    expect(lines).to.have.length(maxLines);
    const [{ level, route, error }] = lines;
    expect([level, route, error.cause.message]).to.deep.equal([
      'warn',
      'metadata',
      'connect ENOENT /nowhere/inspector.sock',
    ]);
  });

  it('names an inspector that ended in the middle of a call', async () => {
    await begin((parts) => parts);
    api.inspect(() => null);
    await askMetadata();
    expect(told().map(({ error }) => error.cause.code)).to.deep.equal(['ECONNRESET']);
  });

  it('names an inspector of another release, which does not know the question', async () => {
    await begin((parts) => parts);
    api.inspect(() => ({ status: 404 }));
    await askMetadata();
    const sentence = 'the inspector does not know /inspect: it is of another release';
    expect(told().map(({ error }) => error.cause.message)).to.deep.equal([sentence]);
  });

  it('says nothing of an inspector that answers and has no free slot', async () => {
    await begin((parts) => parts);
    api.inspect(() => ({ status: 503 }));
    await askMetadata();
    expect(told()).to.deep.equal([]);
  });

  it('names the object store that a file cannot be had from', async () => {
    await begin(withoutFiles);
    await askFile();
    const [{ text, route, error }] = told();
    expect([text, route, error.cause.message]).to.deep.equal([
      'a request was answered 503: the object store did not answer',
      'files',
      'S3 is away',
    ]);
  });

  it('names the object store behind a flood of requests that an inspector did not answer', async () => {
    await begin((parts) => ({ ...withoutFiles(parts), inspector: inspectorAway }));
    for (let n = 0; n < maxLines; n++) await askMetadata();
    await askFile();
    expect(told().map(({ route }) => route)).to.deep.equal([...Array(maxLines).fill('metadata'), 'files']);
  });

  it('names the Redis that a page of the dashboard was not answered by', async () => {
    await begin((parts) => parts);
    const browser = openBrowser(api.dashboardUrl);
    await browser.signIn(await invited(api.store, caller.account));
    const thaw = await freezeProcess(api.redis.pid());
    const { status } = await browser.ask('GET', '/api/keys').finally(thaw);
    expect(status).to.equal(503);
    const [{ level, text, part, route, error }] = told();
    expect([level, text, part, route]).to.deep.equal([
      'warn',
      'a request was answered 503: redis did not answer',
      'dashboard',
      '/api/keys',
    ]);
    expect(error.cause.message).to.be.a('string');
  });
});
