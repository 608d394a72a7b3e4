import { expect } from 'chai';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { beginDrain, endDrain } from '../../src/store/access/drain.ts';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';
import { startNext } from '../support/record.ts';

describe('the service on the dashboard', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let owner: Dashboard['owner'];
  let signedIn: Dashboard['signedIn'];
  eachWithDashboard((dashboard) => {
    ({ api, caller, owner, signedIn } = dashboard);
  });

  it('shows operators the engines, the queue, the workers and who is blocked, with no account chosen', async () => {
    for (const query of ['a', 'b', 'c'])
      await api.get('/v1/video/download', caller.key, { query: `https://films.example/${query}.mp4` });
    await startNext(api.store);
    await api.get('/v1/media/metadata', caller.key, { query: 'https://films.example/d.mp4' });
    await countAuthFailure(api.store, '192.0.2.7', { maxFailures: 1, windowMs: 60_000, blockMs: 60_000 });
    const operator = await signedIn('', 'operator');
    const { json } = await operator.ask('GET', '/api/service');
    expect(json.work).to.include({ queued: 2, running: 1, webhooks: 0 });
    expect(json.oldest_queued_at).to.be.a('string');
    expect(json.engines.map(({ engine, health }: Record<string, string>) => `${engine} ${health}`)).to.deep.equal([
      'video operational',
      'audio operational',
      'media operational',
    ]);
    expect([json.blocked, json.blocks[0].address, json.drain_since]).to.deep.equal([1, '192.0.2.7', null]);
    await beginDrain(api.store);
    expect((await operator.ask('GET', '/api/service')).json.drain_since).to.be.a('string');
    await endDrain(api.store);
  });

  it('is refused to everybody else', async () => {
    for (const browser of [owner, await signedIn(caller.account, 'viewer')]) {
      const { status, json } = await browser.ask('GET', '/api/service');
      expect([status, json.error]).to.deep.equal([403, 'Only operators see the whole service']);
    }
  });
});
