import { expect } from 'chai';
import { cling, escapes } from '../attack/escapes.ts';
import type { HostileSource } from '../attack/hostile-source.ts';
import { expectedAnswer, kernelAttacks } from '../attack/kernel-attacks.ts';
import type { Cluster } from '../support/cluster/cluster.ts';
import { failed } from '../support/cluster/end-to-end.ts';
import type { Installation } from '../support/cluster/installation.ts';
import { readJobTraces } from '../support/cluster/submitted-job.ts';
import { until } from '../support/until.ts';

/** The worker image with the hostile plugin as a folder `/hostile-plugin`. */
export const hostileImage = 'local.test/hostile-worker:1';

interface AttackedCluster {
  readonly cluster: Cluster;
  readonly trawl: Installation;
  readonly source: HostileSource;
  /** Ids of the workers that run on any node. */
  readonly workers: () => readonly number[];
}

/** Gives the answers of kernelAttacks, which prints them, to the test. */
const tryKernel = `
import contextlib, io
said = io.StringIO()
with contextlib.redirect_stdout(said):
    # The image has no program to mount with.
    try: exec(given['attacks'], {})
    except FileNotFoundError: pass
report(said.getvalue())
`;

/** Declares tests of worker pods whose yt-dlp runs the texts of a hostile source. */
export function attackPods(opened: () => AttackedCluster): void {
  before(() =>
    opened().trawl.startController({ TRAWL_WORKER_IMAGE: hostileImage, TRAWL_YTDLP_PLUGINS: '/hostile-plugin' }),
  );
  beforeEach(() => {
    opened().source.reports.length = 0;
  });
  const attack = async (python: string, given: object = {}) => {
    const { trawl, source } = opened();
    const order = await trawl.submit(source.lay(python, given).slice(source.url.length), source.url);
    return readJobTraces(trawl, order, 120);
  };

  it('reaches nothing but egress and its own folder', async () => {
    const { cluster, trawl, source } = opened();
    const tcp = [trawl.gateway, trawl.s3.settings.s3Endpoint, cluster.url, trawl.egress, source.url]
      .map((url) => new URL(url))
      .map(({ hostname, port }) => [hostname, Number(port)]);
    const reads = ['/var/run/trawl/token', '/etc/shadow', '/dev/termination-log'];
    const writes = ['/scratch/x', '/tmp/x', '/dev/termination-log', '/hostile-plugin/x', '/dev/shm/x', '/usr/x'];
    const traces = await attack(escapes, {
      tcp: [...tcp, ['169.254.169.254', 80]],
      sockets: [],
      secret: '/var/run/trawl/token',
      reads,
      writes,
      sharesProcesses: true,
    });
    expect(source.reports).to.deep.equal(['[]']);
    expect(traces).to.deep.equal(failed('unclassified'));
  });

  it('gets no namespace, no mount, no hidden memory, no rarely used part of the kernel, and no call that acts on modes of files, other processes or past TCP', async () => {
    await attack(tryKernel, { attacks: kernelAttacks });
    const [said = ''] = opened().source.reports;
    const answers = said
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as [string, string]);
    expect(answers.length).to.be.at.least(39);
    expect(answers.filter(([name, answer]) => answer !== expectedAnswer(name, false))).to.deep.equal([]);
  });

  it('leaves no pod and no process that has left its group', async () => {
    const { source, workers } = opened();
    expect(await attack(cling)).to.include({ charged: 0, held: 0 });
    expect(source.reports).to.deep.equal(['clings']);
    await until(() => workers().length === 0, 20, 'no worker runs any more');
  });
}
