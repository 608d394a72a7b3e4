import { mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { startCommand } from '../support/caller.ts';
import { mountReadOnly, mountSmall, unmount, whyNoMounts } from '../support/mount.ts';
import { aFolder } from '../support/redis.ts';

const film = 'https://films.example/clip.mp4';

describe('trawl get where no file can be written', () => {
  const noMounts = whyNoMounts();
  let server: Server;
  let parent: string;
  let folder: string;
  let remove: () => void;
  /** Calls of the service that cost a credit. */
  let orders: string[];
  before(async () => {
    ({ folder: parent, remove } = aFolder());
    server = createServer(({ method, url = '' }, response) => {
      if (method === 'POST') orders.push(url);
      response.setHeader('x-error-code', 'payment_required');
      if (method === 'POST') response.writeHead(402).end('{"error":"Payment required"}');
      else response.end('{"remaining":"1"}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
    remove();
  });
  beforeEach(() => {
    orders = [];
    folder = mkdtempSync(join(parent, 'get-'));
  });

  const get = async (args: readonly string[], cwd = folder) => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const own = { HOME: parent, XDG_CACHE_HOME: parent };
    const got = startCommand(['get', ...args, '--json'], cwd, { ...own, TRAWL_API_URL: url, TRAWL_API_KEY: 'k' });
    const code = await got.ended;
    const rows = got.out().trim().split('\n');
    return { code, rows: rows.map((row) => JSON.parse(row)), err: got.err() };
  };
  /** Sees that a command has asked for nothing, and says why. */
  const expectNoOrder = async (args: readonly string[], sentence: RegExp, cwd = folder) => {
    const { code, rows, err } = await get(args, cwd);
    expect([code, orders], err).to.deep.equal([1, []]);
    for (const row of rows) {
      expect(row).to.include({ job_id: null, status: null, path: null, error_code: 'not_written' });
      expect(row.error).to.match(sentence);
    }
    expect(err).not.to.contain('--idempotency-key');
  };

  it('asks for nothing when a file stands where a folder must be', async () => {
    writeFileSync(join(folder, 'taken'), '');
    for (const output of ['taken/', 'taken/clip.mp4'])
      await expectNoOrder([film, '--output', output], /^The file cannot be written: (EEXIST|ENOTDIR)/);
    symlinkSync('nowhere', join(folder, 'link'));
    await expectNoOrder([film, '--output', 'link/'], /^The file cannot be written: (EEXIST|ENOENT)/);
    expect(readdirSync(folder).sort()).to.deep.equal(['link', 'taken']);
  });

  it('asks for a file where one can be written, also beside one of that name, and leaves nothing there', async () => {
    writeFileSync(join(folder, 'clip.mp4'), 'mine');
    for (const output of ['.', 'clip.mp4', 'new/folder/']) {
      const { code, rows } = await get([film, '--output', output]);
      expect([code, rows[0].error_code]).to.deep.equal([1, 'payment_required']);
    }
    expect(orders).to.have.length(3);
    expect(readdirSync(folder, { recursive: true }).sort()).to.deep.equal(['clip.mp4', 'new', 'new/folder']);
  });

  // This is so for everybody but root.
  if (noMounts !== null) console.warn(`The tests of full and read-only folders are left out: ${noMounts}`);
  else {
    it('asks for nothing when its folder is read-only', async () => {
      const closed = join(folder, 'closed');
      mkdirSync(closed);
      mountReadOnly(closed);
      try {
        const sentence = /^The file cannot be written: EROFS/;
        for (const output of ['closed', 'closed/', 'closed/clip.mp4', 'closed/new/'])
          await expectNoOrder([film, '--output', output], sentence);
        await expectNoOrder([film, `${film}?2`], sentence, closed);
        await expectNoOrder([film, '--playlist', '2', '--output', 'closed/'], sentence);
      } finally {
        unmount(closed);
      }
      expect(readdirSync(closed)).to.deep.equal([]);
    });

    it('asks for nothing when the disk of its folder is full', async () => {
      const full = join(folder, 'full');
      mkdirSync(full);
      mountSmall(full, 64 * 1024);
      try {
        writeFileSync(join(full, 'film'), Buffer.alloc(64 * 1024));
        await expectNoOrder([film, '--output', 'full'], /^The file cannot be written: ENOSPC/);
        expect(readdirSync(full)).to.deep.equal(['film']);
      } finally {
        unmount(full);
      }
    });
  }
});
