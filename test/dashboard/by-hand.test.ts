import { expect } from 'chai';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';

describe('a download by hand', () => {
  let owner: Dashboard['owner'];
  eachWithDashboard((dashboard) => {
    ({ owner } = dashboard);
  });

  it('starts no video for an endpoint that is neither video nor audio', async () => {
    const before = (await owner.ask('GET', '/api/jobs')).text;
    for (const endpoint of ['Audio', 'metadata', null, ['audio']]) {
      const { status, json } = await owner.ask('POST', '/api/jobs', { endpoint, query: 'https://example.com/a' });
      expect([status, json.error]).to.deep.equal([400, 'Bad Request: endpoint must be one of video, audio']);
    }
    expect((await owner.ask('GET', '/api/jobs')).text).to.equal(before);
  });
});
