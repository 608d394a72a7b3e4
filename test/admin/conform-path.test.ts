import { expect } from 'chai';
import { makeConformClient } from '../../src/admin/conform-client.ts';
import { jobChecks } from '../../src/admin/conform-jobs.ts';
import { withAlteringProxy } from '../support/altering-proxy.ts';
import { startApi, type TestApi } from '../support/api.ts';

describe('trawl conform of a deployment at a path', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_PUBLIC_URL: 'https://media.example.com/base' });
  });
  after(() => api.stop());

  for (const id of ['D1', 'D83']) {
    it(`${id} wants Location to begin with that path, which a proxy takes off requests`, async () => {
      const { key } = await api.addCaller({ credits: 20, perSecond: 900 });
      const { run } = jobChecks.find((row) => row.id === id)!;
      const judge = async (url: string) => {
        const ask = makeConformClient({ url, key, mediaUrl: null }, new AbortController().signal);
        try {
          return await run(ask);
        } finally {
          await ask.tidy();
        }
      };
      const verdict = await withAlteringProxy(api.url, () => {}, judge, '/base');
      expect(verdict).to.deep.equal({ verdict: 'ok' });
      expect(await judge(api.url)).to.include({ verdict: 'fails' });
    });
  }
});
