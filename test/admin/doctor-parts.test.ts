import { expect } from 'chai';
import { checkParts } from '../../src/admin/check-parts.ts';
import { readConfig } from '../../src/base/config.ts';
import { serveInspector } from '../../src/worker/inspector-server.ts';
import { startEgress, startSource, type TestEgress, type TestSource } from '../support/egress.ts';
import { type SilentPort, startSilentPort } from '../support/silent-port.ts';

const refused = { failure: { code: 'address_not_allowed', text: 'It is private.' } } as const;
const gone = { failure: { code: 'unclassified', text: 'It is odd.' } } as const;

describe('the doctor among the parts of a cluster', () => {
  let egress: TestEgress;
  let source: TestSource;
  let inspector: Awaited<ReturnType<typeof serveInspector>>;
  let closed: SilentPort;
  let found: typeof refused | typeof gone = refused;
  before(async () => {
    egress = await startEgress();
    source = await startSource((_, response) => response.end('a gateway'));
    const ask = async () => found;
    closed = await startSilentPort();
    inspector = await serveInspector({ inspect: ask, list: ask }, { host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    await egress.close();
    await source.close();
    await inspector.close(0);
    await closed.stop();
  });
  const portOf = (server: TestEgress) => ('port' in server.address ? server.address.port : 0);
  const settings = () => ({
    TRAWL_EGRESS_ADDRESS: `http://127.0.0.1:${portOf(egress)}`,
    TRAWL_INSPECTOR_ADDRESS: `http://127.0.0.1:${inspector.port}`,
    TRAWL_GATEWAY_ADDRESS: closed.url,
  });
  const check = async (more: object = {}) => {
    const findings = await checkParts(readConfig({ ...settings(), ...more }));
    return findings.map(({ level, about, text }) => [about, level, text] as const);
  };
  const about = async (subject: string, more: object = {}) =>
    (await check(more)).filter(([name]) => name === subject).map(([, level, text]) => `${level}: ${text}`);

  it('finds nothing wrong where each answers and the gateway is closed to it', async () => {
    expect((await check()).filter(([, level]) => level !== 'ok')).to.deep.equal([]);
  });

  it('says which name cannot be resolved, and which part is away', async () => {
    const more = { TRAWL_EGRESS_ADDRESS: 'http://egress.invalid:4750', TRAWL_INSPECTOR_ADDRESS: 'http://127.0.0.1:9' };
    expect((await about('dns', more))[0]).to.match(
      /^problem: The name egress\.invalid of the egress cannot be resolved/,
    );
    expect(await about('inspector', more)).to.have.length(1);
    expect((await about('inspector', more))[0]).to.match(
      /^problem: http:\/\/127\.0\.0\.1:9 cannot be asked: .*ECONNREFUSED/,
    );
  });

  it('tells a proxy that is no egress, and an inspector that asks none', async () => {
    found = gone;
    expect(await about('egress', { TRAWL_EGRESS_ADDRESS: source.url.slice(0, -1) })).to.deep.equal([
      `problem: ${source.url.slice(0, -1)} reached http://127.0.0.1/: it is no egress of trawl.`,
    ]);
    expect((await about('inspector'))[0]).to.match(/^problem: .* unclassified where egress refuses the address/);
    found = refused;
  });

  it('says that nothing enforces network policies where it reaches the gateway, and whether the operator vouched', async () => {
    const open = { TRAWL_GATEWAY_ADDRESS: source.url.slice(0, -1) };
    expect((await about('network policies', open))[0]).to.match(/^note: The cluster enforces no network policies/);
    const vouched = { ...open, TRAWL_WORKER_NETWORK: 'policies-enforced' };
    expect((await about('network policies', vouched))[0]).to.match(
      /^problem: .* TRAWL_WORKER_NETWORK says that it does\.$/,
    );
  });

  it('judges no network policies in a pod of the controller, which reaches its own gateway whatever they say', async () => {
    const own = {
      ...{ TRAWL_GATEWAY_ADDRESS: `http://127.0.0.1:${inspector.port}`, TRAWL_GATEWAY_PORT: String(inspector.port) },
      TRAWL_WORKER_NETWORK: 'policies-enforced',
    };
    expect(await about('network policies', own)).to.deep.equal([
      'note: Network policies cannot be judged in a pod of the controller, which always reaches itself: helm test tells whether they are enforced.',
    ]);
  });

  it('takes no gateway that is down, or whose TLS fails, for one that network policies close', async () => {
    const vouched = { TRAWL_WORKER_NETWORK: 'policies-enforced' };
    for (const [gateway, cause] of [
      ['http://127.0.0.1:9', 'ECONNREFUSED'],
      [source.url.slice(0, -1).replace('http:', 'https:'), 'SSL'],
    ] as const) {
      const [said, ...more] = await about('network policies', { ...vouched, TRAWL_GATEWAY_ADDRESS: gateway });
      expect(more).to.deep.equal([]);
      expect(said)
        .to.match(/^note: .* cannot be judged here: the gateway does not answer, or /)
        .and.include(cause);
    }
  });

  it('leaves network policies out where the chart makes none, and every pod reaches the gateway', async () => {
    const open = { ...settings(), TRAWL_GATEWAY_ADDRESS: source.url.slice(0, -1) };
    const findings = await checkParts(readConfig(open), false);
    expect(findings.map(({ about }) => about)).not.to.include('network policies');
  });
});
