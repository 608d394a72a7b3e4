import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { findExposed } from '../../src/worker/find-programs.ts';
import { programFolders } from '../../src/worker/sandbox-command.ts';
import { followChild } from '../support/followed-child.ts';
import { aFolder } from '../support/redis.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';
import { programs } from '../support/worker.ts';

describe('A path that children could read', () => {
  it('lies in a folder of the system, of a program or of a plugin, also behind a link', () => {
    const { folder, remove } = aFolder();
    const [data, plugin, link] = ['data', 'plugin', 'link'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    mkdirSync(data);
    mkdirSync(join(plugin, 'data'), { recursive: true });
    symlinkSync(join(plugin, 'data'), link);
    const paths = ['/usr/share', join(programs.python, '..'), plugin, join(plugin, 'data'), link];
    const closed = [data, folder, join(folder, 'missing'), '/etc'];
    expect(findExposed([...paths, ...closed], programs, [plugin])).to.deep.equal(paths);
    remove();
  });

  it('is not the home of a user who keeps a program in it, but the folder of a program which has one of its own', () => {
    const { folder, remove } = aFolder();
    const [home, link] = [join(folder, 'home', 'ada'), join(folder, 'ada')];
    const { HOME } = process.env;
    const lay = (...names: string[]) => {
      const file = join(folder, ...names, 'ffmpeg');
      mkdirSync(join(file, '..'), { recursive: true });
      writeFileSync(file, '');
      const found = programFolders([file]);
      return found.map((path) => path.slice(folder.length + 1)).toSorted();
    };
    mkdirSync(home, { recursive: true });
    symlinkSync(home, link);
    try {
      process.env.HOME = home;
      expect(lay('home/ada')).to.deep.equal(['home/ada/ffmpeg']);
      expect(lay('home/ada/bin')).to.deep.equal(['home/ada/bin']);
      expect(lay('home/bin')).to.deep.equal(['home/bin']);
      mkdirSync(join(home, '.local', 'lib'), { recursive: true });
      expect(lay('home/ada/.local/bin')).to.deep.equal(['home/ada/.local/bin', 'home/ada/.local/lib']);
      expect(lay('home/ada/ffmpeg-7/bin')).to.deep.equal(['home/ada/ffmpeg-7']);
      process.env.HOME = link;
      expect(lay('ada/bin')).to.deep.equal(['ada/bin', 'home/ada/bin']);
      expect(lay('ada/.local/bin')).to.have.length(4);
    } finally {
      if (HOME === undefined) delete process.env.HOME;
      else process.env.HOME = HOME;
      remove();
    }
  });

  it('stops the start where it is the data folder and children have no user of their own', async () => {
    const { folder, remove } = aFolder();
    const data = join(folder, 'data');
    const ports = { TRAWL_PORT: '0', TRAWL_PROBE_PORT: '0', TRAWL_DASHBOARD_PORT: '0' };
    const env = { ...process.env, ...ports, TRAWL_DATA: data, TRAWL_YTDLP_PLUGINS: folder };
    // In this namespace there is no other user.
    const up = spawn('unshare', ['-Ur', join(root, 'trawl'), 'up'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const { ended, output } = followChild(up);
    await until(() => /could read|trawl answers/.test(output()), 60, 'it is refused or answers');
    // A start that is refused ends by itself, on a busy machine some time after its sentence.
    if (/trawl answers/.test(output())) up.kill('SIGTERM');
    expect(await ended, output()).to.equal(1);
    expect(output()).to.include(`yt-dlp could read ${data}: `);
    remove();
  });
});
