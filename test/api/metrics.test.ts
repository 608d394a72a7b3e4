import { expect } from 'chai';
import { freePort } from '../support/free-port.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { startUp } from '../support/up.ts';

describe('metrics of the API', () => {
  it('D38: trawl_auth_failures_total on /metrics counts requests with a missing or unknown key, and no others', async () => {
    const { folder, remove } = aFolder();
    const probe = await freePort();
    const up = await startUp({ TRAWL_DATA: folder, TRAWL_PROBE_PORT: String(probe) });
    try {
      const key = (await until(() => /'x-api-key: (\S+)'/.exec(up.output())?.[1], 5, 'the sample key'))!;
      const ask = async (path: string, headers: Record<string, string>) =>
        (await fetch(up.url + path, { headers })).status;
      const unknown = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;
      expect(await ask('/v1/usage', {})).to.equal(401);
      expect(await ask('/v1/usage', { 'x-api-key': unknown })).to.equal(401);
      expect(await ask('/v1/video/download?soft_fail=true', {})).to.equal(200);
      expect(await ask('/v1/usage', { 'x-api-key': key })).to.equal(200);
      expect(await ask('/v1/nothing', {})).to.equal(404);
      expect(await ask('/files/x/y', {})).to.equal(403);
      const metrics = await (await fetch(`http://127.0.0.1:${probe}/metrics`)).text();
      expect(metrics).to.match(/^trawl_auth_failures_total 3$/m);
      expect(metrics).to.match(/^trawl_http_requests_total\{route="usage",status="401"\} 2$/m);
      expect(metrics).to.match(/^trawl_http_request_seconds_count\{route="usage"\} 3$/m);
      expect(metrics).to.match(/^trawl_build_info\{version="[^"]+",role="up"\} 1$/m);
    } finally {
      up.process.kill('SIGTERM');
      await up.ended;
      remove();
    }
  });
});
