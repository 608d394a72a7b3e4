import { once } from 'node:events';
import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { hasNamespaces } from '../../src/worker/sandbox-command.ts';
import { programsOfOthers } from '../support/other-user.ts';
import { aFolder } from '../support/redis.ts';
import { sandboxes } from '../support/workspace.ts';
import { escapes } from './escapes.ts';
import { attackWorker } from './hostile-attempt.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

describe('A yt-dlp that was taken over, on one machine', () => {
  let source: HostileSource;
  const others = programsOfOthers();
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());

  for (const sandbox of [...sandboxes, 'landlock-user'] as const) {
    it(`reaches nothing but egress and its own folder (sandbox ${sandbox})`, async () => {
      source.reports.length = 0;
      const { folder, remove } = aFolder();
      const secret = join(folder, 'secret');
      writeFileSync(secret, 'secret', { mode: 0o600 });
      const server = createServer((_, answer) => answer.end('reached'));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const tcp = [
        ['127.0.0.1', (server.address() as AddressInfo).port],
        ['169.254.169.254', 80],
      ];
      const reads = [secret, '/etc/shadow'];
      const local = createServer().listen(join(folder, 'socket'));
      await once(local, 'listening');
      // Anybody may connect.
      for (const path of [tmpdir(), folder]) chmodSync(path, 0o711);
      chmodSync(join(folder, 'socket'), 0o777);
      const sockets = [join(folder, 'socket')];
      const writes = [secret, join(folder, 'written'), '/tmp/written-by-child', '/dev/shm/written-by-child'];
      try {
        const url = source.lay(escapes, {
          tcp,
          sockets,
          secret,
          reads,
          writes,
          sharesProcesses: !hasNamespaces(sandbox),
        });
        const programs = sandbox === 'landlock-user' ? { programs: others() } : {};
        const { log } = await attackWorker({ source, sandbox, url, ...programs });
        expect(source.reports, log).to.deep.equal(['[]']);
        expect(statSync(secret).mode & 0o777).to.equal(0o600);
      } finally {
        chmodSync(tmpdir(), 0o700);
        local.close();
        server.close();
        remove();
      }
    });
  }
});
