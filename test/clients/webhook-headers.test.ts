import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import * as undici from 'undici';
import { verifyWebhook } from '../../clients/typescript/src/trawl.ts';

describe('verifyWebhook, in typescript', () => {
  it('reads the headers of every kind of request', async () => {
    const key = Buffer.alloc(24, 1);
    const secret = `whsec_${key.toString('base64')}`;
    const body = '{"id":"1","status":"Error","error":"Gone"}';
    const now = 1_772_618_400;
    const signature = `v1,${createHmac('sha256', key).update(`1.${now}.${body}`).digest('base64')}`;
    const sent = { 'Webhook-Id': '1', 'webhook-timestamp': String(now), 'webhook-signature': signature };
    const lists = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, [value]]));
    // The last one is of another `fetch` than that of the platform, as in node-fetch and in jsdom.
    for (const headers of [sent, lists, new Headers(sent), new undici.Headers(sent)])
      expect(await verifyWebhook(body, headers as Headers, { secret, now })).to.deep.equal(JSON.parse(body));
  });
});
