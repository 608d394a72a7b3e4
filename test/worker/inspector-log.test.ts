import { expect } from 'chai';
import { Failed } from '../../src/media/tools.ts';
import { startInspectorPool } from '../../src/worker/inspector-pool.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { programs } from '../support/worker.ts';

describe('the log of the inspector', () => {
  it('tells what yt-dlp said of a failure of ours, without the paths of URLs, and of no other', async () => {
    const { folder, remove } = aFolder();
    const { lines, log } = aLog();
    const inspector = await startInspectorPool({
      inspectUrl: async ({ args: { query } }) => {
        throw new Failed(query === 'https://a.example/' ? 'private' : 'extractor_failed', `KeyError at ${query}`);
      },
      ...{ programs, root: folder, cgroups: null, sandbox: 'user', plugins: [] },
      ...{ egress: { host: '127.0.0.1', port: 9 }, inspectSeconds: 20, maxConcurrent: 1, maxRequests: 100, log },
    });
    const { signal } = new AbortController();
    await inspector.inspect('https://a.example/', 'a', signal);
    const found = await inspector.inspect('https://b.example/film?token=secret', 'a', signal);
    await inspector.close();
    remove();
    expect(found).to.have.nested.property('failure.code', 'extractor_failed');
    const told = lines.map((line) => JSON.parse(line)).filter(({ detail }) => detail !== undefined);
    expect(told).to.have.length(1);
    expect(told[0]).to.include({ text: 'an inspection failed through our fault', code: 'extractor_failed' });
    expect(told[0].detail).to.equal('KeyError at https://b.example/…');
  });
});
