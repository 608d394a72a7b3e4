import { connect } from 'node:net';
import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { until } from '../support/until.ts';

describe('a metadata call whose caller leaves before it is admitted', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi();
    caller = await api.addCaller({ credits: 10 });
  });
  after(() => api.stop());

  it('ends at once, without its hold and without an inspection that nobody waits for', async () => {
    api.inspect(async (_, __, gone) => {
      await gone;
      return null;
    });
    const target = '/v1/media/metadata?query=https://example.com/a';
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1').on('error', () => {});
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n\r\n`, () => socket.destroy());
    const countLeft = async () => {
      const { values } = await api.metrics.http_requests_total.get();
      return values.filter(({ labels }) => labels.route === 'metadata' && labels.status === 499).length;
    };
    await until(async () => (await countLeft()) === 1, 10, 'the call has ended');
    const { held, total_used } = (await api.get('/v1/usage', caller.key)).json;
    expect([held, total_used]).to.deep.equal([0, 0]);
  });
});
