import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { run } from '../support/cluster/network.ts';
import { type OpenImage, openImage, runImage } from '../support/container.ts';
import { buildMilliseconds, type Images, openImages, script } from '../support/images.ts';

const python = '/opt/trawl/.cache/python/bin/python3';
const packages = '/opt/trawl/.cache/python/lib/python3.13/site-packages';
const measure = `import resource, subprocess
subprocess.run(['yt-dlp', '--version'], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)`;

describe('The images under a read-only root', () => {
  let images: Images;
  before(function () {
    this.timeout(buildMilliseconds);
    images = openImages();
  });
  after(() => images?.close());

  const ask = async (image: OpenImage, ...command: string[]) => {
    const { code, out, err } = await runImage(image, { command });
    expect(code, err).to.equal(0);
    return out.trim();
  };

  it('are not rebuilt without a change', () => {
    const stamps = () => readdirSync(images.folder).map((name) => statSync(join(images.folder, name)).ino);
    const before = stamps();
    const { status, stdout } = spawnSync(script, { encoding: 'utf8' });
    expect(status).to.equal(0);
    expect(stdout.split('\n').filter(Boolean)).to.have.length(3);
    expect(stamps()).to.deep.equal(before);
  });

  it('start every role from compiled code', async () => {
    for (const [image, unfit] of [
      [images.server, ['up', 'worker', 'inspector']],
      [images.worker, ['up']],
    ] as const) {
      const overview = (await runImage(image, {})).out;
      const roles = [...overview.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!);
      expect(roles).to.include.members(['egress', 'worker']);
      for (const role of roles.filter((name) => !unfit.includes(name as 'up'))) {
        const { code, out, err } = await runImage(image, {
          args: [role, '--help'],
          env: { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
        });
        expect(code, err).to.equal(0);
        const told = `${out}${err}`;
        expect(told).to.include(`trawl ${role}`);
        const found = [...told.matchAll(/code cache for \w+ (\S+) was (\w+)/g)];
        expect(found.length, role).to.be.above(5);
        expect(found.filter(([, , is]) => is !== 'accepted').map(([, path]) => path)).to.deep.equal([]);
        expect(told).to.not.include('writing cache');
      }
    }
  });

  it('have the programs in the listed versions', async () => {
    const bom = JSON.parse(readFileSync(join(images.folder, 'worker.cdx.json'), 'utf8')) as {
      components: { name: string; version: string; purl: string }[];
    };
    const listed = (purl: string) => bom.components.find((each) => each.purl.startsWith(`${purl}@`))?.version ?? '';
    expect(`v${listed('pkg:generic/node')}`).to.equal(await ask(images.worker, 'node', '--version'));
    expect(listed('pkg:pypi/yt-dlp')).to.equal(await ask(images.worker, 'yt-dlp', '--version'));
    const [, ffmpeg = ''] = /^ffmpeg version (\S+)/.exec(await ask(images.worker, 'ffmpeg', '-version')) ?? [];
    expect(listed('pkg:deb/debian/ffmpeg').replace(/^\d+:/, '')).to.equal(ffmpeg);
    const [major = 0, minor = 0, patch = 0] = ffmpeg.split(/[.-]/).map(Number);
    expect(major * 1e6 + minor * 1e3 + patch).to.be.at.least(7_001_005);
    expect(`Python ${listed('pkg:deb/debian/python3.13-minimal').split('-')[0]}`).to.equal(
      await ask(images.worker, 'python3', '--version'),
    );
  });

  it('load yt-dlp without compiling Python', async () => {
    for (const [command, least] of [
      [[python, '-v', '-m', 'yt_dlp', '--version'], 200],
      [
        [
          python,
          '-v',
          '-I',
          '-B',
          '-X',
          'utf8',
          '-c',
          'import sys; sys.path.insert(0, "/opt/trawl/src/media"); import driver',
        ],
        200,
      ],
    ] as const) {
      const { code, err } = await runImage(images.worker, { command: [...command] });
      expect(code, err.slice(-2000)).to.equal(0);
      const loaded = [...err.matchAll(/^# code object from '?(.*?)'?$/gm)].map(([, from]) => from!);
      expect(loaded.length).to.be.above(least);
      expect(loaded.filter((from) => !from.endsWith('.pyc') && !from.endsWith('yt_dlp/__main__.py'))).to.deep.equal([]);
    }
  });

  it('give Python the certificate authorities', async () => {
    const count = await ask(
      images.worker,
      python,
      '-c',
      'import ssl; print(len(ssl.create_default_context().get_ca_certs()))',
    );
    expect(Number(count)).to.be.above(100);
  });

  it('remove a folder that a taken-over child left unreadable: an inspector did not start again in the same pod', async () => {
    const lay = `import os; os.makedirs('/scratch/a'); os.mkdir('/scratch/a/closed', 0o300); open('/scratch/a/closed/file', 'w')`;
    const remove = `import('/opt/trawl/src/media/child-folder.ts').then(({ removeFolder }) => removeFolder('/scratch/a'))`;
    const left = `python3 -c "${lay}" && node -e "${remove}" && ! [ -e /scratch/a ]`;
    expect(await ask(images.worker, 'sh', '-c', left)).to.equal('');
    const called = ['chmod', 'kill', 'rm', 'rmdir', 'seq', 'sleep'];
    expect(
      await ask(images.worker, 'sh', '-c', `command -V ${called.join(' ')} >/dev/null`),
      'orphan cleaner',
    ).to.equal('');
  });

  it('have no writable folder but the work folder', async () => {
    const tried = `for place in / /tmp /opt/trawl /usr/bin /scratch; do ( : >"$place/x" ) && echo "$place"; done 2>/dev/null; true`;
    expect(await ask(images.worker, 'sh', '-c', tried)).to.equal('/scratch');
  });

  if (process.env.ROUNDS !== undefined)
    it('start yt-dlp as fast as a writable folder with warm bytecode', async () => {
      const other = openImage(join(images.folder, 'worker.tar'));
      try {
        const places = ['/usr/lib/python3.13', packages].map((place) => other.root + place);
        run('find', ...places, '-name', '__pycache__', '-prune', '-exec', 'rm', '-r', '{}', '+');
        run('find', ...places, '-type', 'd', '-exec', 'chmod', 'a+w', '{}', '+');
        const [warm, compiled] = [await cpuSeconds(other, true), await cpuSeconds(images.worker, false)];
        console.log(
          `      yt-dlp --version: ${compiled.toFixed(3)} s of CPU in the image, ${warm.toFixed(3)} s when warm`,
        );
        expect(existsSync(join(other.root, packages, 'yt_dlp', '__pycache__'))).to.equal(true);
        expect(compiled / warm).to.be.at.most(1.1);
      } finally {
        other.close();
      }
    });
});

/** Median user and system time of `yt-dlp --version`, after two runs that are not counted. */
async function cpuSeconds(image: OpenImage, rootMayBeWritten: boolean): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 23; round++) {
    const { out, err } = await runImage(image, { command: ['python3', '-c', measure], rootMayBeWritten });
    expect(Number(out), err).to.be.above(0);
    if (round >= 2) times.push(Number(out));
  }
  return times.sort((one, other) => one - other)[10]!;
}
