import { spawnSync } from 'node:child_process';
import { globSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { buildMilliseconds, type Images, openImages } from '../support/images.ts';
import { aFolder } from '../support/redis.ts';
import { root } from '../support/tree.ts';

const suiteMilliseconds = 3_600_000;

/** Lets the programs of an image run outside of it, with its own libraries. */
function layPrograms(image: string, folder: string): void {
  const libraries = new Set(globSync(join(image, 'usr/lib/**/lib*.so*')).map(dirname));
  const [loader] = globSync(join(image, 'usr/lib/*/ld-linux-*.so.*'));
  for (const name of ['ffmpeg', 'ffprobe']) {
    const words = [loader, '--library-path', [...libraries].join(':'), join(image, 'usr/bin', name)];
    writeFileSync(join(folder, name), `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`, { mode: 0o755 });
  }
}

// Eight minutes, so this is of the long form.
if (process.env.ROUNDS !== undefined)
  describe('The ffmpeg of the worker image', () => {
    let images: Images;
    before(function () {
      this.timeout(buildMilliseconds);
      images = openImages();
    });
    after(() => images?.close());

    it('passes the tests of media, whose films the older one of the machine makes', function () {
      this.timeout(suiteMilliseconds);
      const { folder, remove } = aFolder();
      try {
        layPrograms(images.worker.root, folder);
        const { ROUNDS: _, ...env } = process.env;
        const { status, stdout } = spawnSync(process.execPath, ['test/run.ts', '--groups', 'media'], {
          ...{ cwd: root, env: { ...env, FFMPEG_FOLDER: folder, TMPDIR: folder } },
          ...{ encoding: 'utf8', maxBuffer: 2 ** 26, stdio: ['ignore', 'pipe', 'inherit'] },
        });
        expect(status, stdout.slice(-10_000)).to.equal(0);
        expect(stdout).to.match(/^[1-9]\d+ passed, 0 failed$/m);
      } finally {
        remove();
      }
    });
  });
