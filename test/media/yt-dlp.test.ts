import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { produce } from '../../src/media/produce-file.ts';
import { spawnChild } from '../../src/media/spawn-child.ts';
import type { RunChild } from '../../src/media/tools.ts';
import { pythonFlags } from '../../src/media/yt-dlp.ts';
import { aTools, openStudio, plugins, python } from '../support/media.ts';
import { aFolder } from '../support/redis.ts';

describe('The driver of yt-dlp', function () {
  this.timeout(120_000);

  it('has the same extractors in the same order as yt-dlp, plugins included', () => {
    const { driver } = aTools('', '');
    const text = `
import sys
sys.path.insert(0, ${JSON.stringify(dirname(driver))})
import driver
driver.prepare([${JSON.stringify(plugins)}])
options = driver.options({'proxy': '', 'tools': '/', 'node': '/'}, print)
ours, theirs = driver.Downloader(options), driver.yt_dlp.YoutubeDL(options)
print(list(ours._ies.items()) == list(theirs._ies.items()), len(ours._ies) > 1000, 'TestPage' in ours._ies)
`;
    const said = execFileSync(python, [...pythonFlags, '-c', text], { encoding: 'utf8' });
    expect(said.trim()).to.equal('True True True');
  });

  it('reads and writes every letter in an ASCII locale', async () => {
    const studio = await openStudio();
    const { folder, remove } = aFolder();
    const title = 'Über ein Café – 映画 🎬';
    const query = studio.source.lay('letters', {
      info: { title, formats: [{ format_id: 'x', url: `${studio.source.url}/films/clip.mp4`, ext: 'mp4' }] },
    });
    const plain: RunChild = (command, args, options) =>
      spawnChild(command, args, { ...options, env: { ...options.env, LANG: 'C', LC_ALL: 'C', PYTHONUTF8: '0' } });
    const order = { endpoint: 'video', args: { query: `${query}?q=é`, video_format: 'mp4' } } as const;
    const tools = { ...aTools(folder, studio.proxy.url), run: plain };
    try {
      const { metadata } = await produce(order, tools, () => undefined, AbortSignal.timeout(20_000));
      expect(metadata).to.include({ title, original_url: `${query}?q=é` });
    } finally {
      await studio.stop();
      remove();
    }
  });
});
