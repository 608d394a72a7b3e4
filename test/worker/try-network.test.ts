import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { release } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readNetworkTrial } from '../../src/model/network-trial.ts';
import { runCommand as runWorkerRole } from '../../src/roles/run-worker.ts';
import { tryNetwork } from '../../src/worker/try-network.ts';
import { freePort } from '../support/free-port.ts';
import { aFolder } from '../support/redis.ts';

describe('a pod that tries what workers reach', () => {
  const { folder, remove } = aFolder();
  const servers: Server[] = [];
  const listen = async (server = createServer((wire) => wire.destroy())) => {
    const port = await freePort();
    servers.push(server.listen(port, '127.0.0.1'));
    await once(server, 'listening');
    return port;
  };
  let ports: number[];
  /** A port at which nothing listens. */
  let closedPort: number;
  before(async () => {
    ports = [await listen(), await listen(), await listen()];
    closedPort = await freePort();
  });
  after(async () => {
    await Promise.all(
      servers.filter((server) => server.listening).map((server) => new Promise((end) => server.close(end))),
    );
    remove();
  });
  const at = (port: number | undefined) => ({ host: '127.0.0.1', port: port ?? 0 });
  const nameOf = (port: number | undefined) => `127.0.0.1:${port}`;

  it('finds nothing where all that it needs answers and the rest is closed', async () => {
    const trial = await tryNetwork({
      needed: [at(ports[0]), at(ports[1])],
      closed: [nameOf(closedPort)],
      maxMs: 60_000,
    });
    expect(trial).to.deep.equal({ missed: [], open: [], kernel: release() });
  });

  it('names what it misses and what is open to it', async () => {
    const closed = [nameOf(ports[2]), nameOf(closedPort)];
    const trial = await tryNetwork({ needed: [at(ports[0]), at(closedPort)], closed, maxMs: 0 });
    const missed = [`http://127.0.0.1:${closedPort}`];
    expect(trial).to.deep.equal({ missed, open: [nameOf(ports[2])], kernel: release() });
  });

  it('tries again until a network plugin has closed a way', async () => {
    let accepted = 0;
    const server = createServer((wire) => {
      wire.destroy();
      accepted++;
      server.close();
    });
    const port = await listen(server);
    const trial = await tryNetwork({ needed: [], closed: [nameOf(port)], maxMs: 60_000 });
    expect({ ...trial, accepted }).to.deep.equal({ missed: [], open: [], kernel: release(), accepted: 1 });
  });

  it('leaves its answer for the status of the pod, the API server of its cluster included', async () => {
    const file = join(folder, 'termination-log');
    const env = {
      TRAWL_GATEWAY_ADDRESS: `http://${nameOf(ports[0])}`,
      TRAWL_EGRESS_ADDRESS: `http://${nameOf(ports[1])}`,
      TRAWL_TERMINATION_FILE: file,
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String(closedPort),
    };
    const terminal = { out: () => undefined, err: () => undefined, isWatched: false, env };
    expect(await runWorkerRole(['--try-network', nameOf(closedPort)], terminal)).to.equal(0);
    expect(readNetworkTrial(readFileSync(file, 'utf8'))).to.deep.equal({ missed: [], open: [], kernel: release() });
  });

  it('is read only as it is written', () => {
    for (const text of ['', 'null', '{}', '{"missed":[1],"open":[],"kernel":"6"}', '{"missed":[],"open":[]}']) {
      expect(readNetworkTrial(text), text).to.equal(null);
    }
  });
});
