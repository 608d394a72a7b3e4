import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { findExposed } from '../../src/worker/exposed-paths.ts';
import { programFolders } from '../../src/worker/sandbox-command.ts';
import { followChild } from '../support/followed-child.ts';
import { aFolder } from '../support/redis.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';
import { programs } from '../support/worker.ts';

describe('A path that children could read', function () {
  this.timeout(120_000);

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

  it('is not the home of a user who keeps a program in its bin, but that of a program which has a folder of its own', () => {
    const { folder, remove } = aFolder();
    const { HOME } = process.env;
    const lay = (...names: string[]) => {
      mkdirSync(join(folder, ...names, 'bin'), { recursive: true });
      writeFileSync(join(folder, ...names, 'bin', 'ffmpeg'), '');
      return programFolders([join(folder, ...names, 'bin', 'ffmpeg')]);
    };
    try {
      process.env.HOME = folder;
      expect(lay()).to.deep.equal([join(folder, 'bin')]);
      mkdirSync(join(folder, '.local', 'lib'), { recursive: true });
      expect(lay('.local')).to.have.members(['bin', 'lib'].map((name) => join(folder, '.local', name)));
      expect(lay('ffmpeg-7')).to.deep.equal([join(folder, 'ffmpeg-7')]);
    } finally {
      process.env.HOME = HOME;
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
    up.kill('SIGTERM');
    expect(await ended, output()).to.equal(1);
    expect(output()).to.include(`yt-dlp could read ${data}: `);
    remove();
  });
});
