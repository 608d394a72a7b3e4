import { rmSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { type RoleProcess, spawnRole } from '../support/role-process.ts';
import { makeTlsFiles, type TlsFiles } from '../support/tls-files.ts';
import { until } from '../support/until.ts';

const host = '127.0.0.1';
const day = (n: number) => new Date(Date.UTC(2040, 0, n));

describe('trawl_certificate_ends_seconds', () => {
  let files: TlsFiles;
  let egress: RoleProcess;
  before(async () => {
    files = makeTlsFiles('first', [host]);
    files.write(files.authority.issue({ name: host, hosts: [host], ends: day(9) }));
    egress = await spawnRole('egress', {
      TRAWL_TLS_CERT_FILE: files.certFile,
      TRAWL_TLS_KEY_FILE: files.keyFile,
      TRAWL_TLS_CA_FILE: files.caFile,
    });
  });
  after(async () => {
    await egress.end('SIGTERM');
    files.remove();
  });

  const endOf = async (use: string): Promise<number | null> => {
    const text = await egress.probe('/metrics').then(
      (answer) => answer.text,
      () => '',
    );
    const [, value] = new RegExp(`^trawl_certificate_ends_seconds\\{use="${use}"\\} (\\S+)$`, 'm').exec(text) ?? [];
    return value === undefined ? null : Number(value) * 1000;
  };
  const whenEnds = (use: string, end: Date) =>
    until(async () => (await endOf(use)) === end.getTime(), 30, `${use} until ${end.toISOString()}`);

  it('shows the end of the certificate that a part serves, of a new one that takes its place, and of the first of a chain', async () => {
    await whenEnds('served', day(9));
    const renewed = files.authority.issue({ name: host, hosts: [host], ends: day(20) });
    const short = files.authority.issue({ name: 'between', ends: day(12) });
    files.write({ ...renewed, cert: renewed.cert + short.cert });
    await whenEnds('served', day(12));
  });

  it('goes on to show that of the certificate in use when the new one has another key', async () => {
    await whenEnds('served', day(12));
    files.write({ cert: files.authority.issue({ name: host, hosts: [host], ends: day(30) }).cert });
    await until(() => egress.output().includes('cannot be used'), 30, 'the warning');
    expect(await endOf('served')).to.equal(day(12).getTime());
  });

  it('shows the last end of the trusted authorities, and /metrics answers when their file is damaged or gone', async () => {
    const end = Date.parse('2049-12-31T23:59:59Z');
    expect(await endOf('trusted')).to.equal(end);
    writeFileSync(files.caFile, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    expect((await egress.probe('/metrics')).status).to.equal(200);
    rmSync(files.caFile);
    expect((await egress.probe('/metrics')).status).to.equal(200);
  });
});
