import { expect } from 'chai';
import { removePerson } from '../../src/store/people/remove-person.ts';
import { startApi } from '../support/api.ts';
import { type BrowserSession, type Dashboard, eachWithDashboard, signedInAt } from '../support/browser-session.ts';

const email = 'guest@example.com';

describe('a stream of jobs that a page of the dashboard has opened', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let signedIn: Dashboard['signedIn'];
  eachWithDashboard((dashboard) => {
    ({ api, caller, signedIn } = dashboard);
  });

  const losses: Record<string, (browser: BrowserSession) => Promise<unknown>> = {
    'was removed from the account': () => removePerson(api.store, caller.account, email),
    'has signed out': (browser) => browser.ask('POST', '/api/sign-out', {}),
    'has chosen another account': async (browser) => {
      const other = await api.addCaller();
      await signedIn(other.account, 'viewer', email);
      const { status } = await browser.ask('POST', '/api/session/account', { account: other.slug });
      expect(status).to.equal(200);
    },
  };
  it('forbids proxies to compress it, which would keep back the end of each change until the next one', async () => {
    const { cookie } = await signedIn(caller.account, 'viewer', email);
    const { headers, body } = await fetch(`${api.dashboardUrl}/api/jobs/events`, { headers: { cookie } });
    await body!.cancel();
    expect(headers.get('cache-control')).to.equal('no-store, no-transform');
  });

  for (const [word, lose] of Object.entries(losses)) {
    it(`ends at the next change, and tells nothing of it, once its person ${word}`, async () => {
      const browser = await signedIn(caller.account, 'member', email);
      const stream = await fetch(`${api.dashboardUrl}/api/jobs/events`, { headers: { cookie: browser.cookie } });
      const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
      let said = '';
      const hear = async (words: string) => {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) return false;
          said += value;
          if (said.includes(words)) return true;
        }
      };
      expect(await hear('"jobs":[]')).to.equal(true);
      await lose(browser);
      const { json } = await api.get('/v1/video/download', caller.key, { query: 'https://example.com/film.mp4' });
      expect(await hear(json.job_id)).to.equal(false);
      await removePerson(api.store, caller.account, email).catch(() => null);
    });
  }

  it('is ended before the dashboard that stops cuts its connection, so that the browser asks the next one', async () => {
    const stopping = await startApi();
    const { account } = await stopping.addCaller();
    const { cookie } = await signedInAt(stopping, account, 'viewer');
    const { body } = await fetch(`${stopping.dashboardUrl}/api/jobs/events`, { headers: { cookie } });
    const reader = body!.getReader();
    await reader.read();
    const stopped = stopping.stop();
    try {
      // A connection that is cut makes this throw.
      for (let seen = await reader.read(); !seen.done; ) seen = await reader.read();
    } finally {
      await stopped;
    }
  });
});
