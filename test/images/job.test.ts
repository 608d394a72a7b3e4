import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { runImage, startImage } from '../support/container.ts';
import { startGateway, token } from '../support/gateway.ts';
import { buildMilliseconds, type Images, openImages } from '../support/images.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { aFolder } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

const places = { TRAWL_DATA: '/scratch', HOME: '/scratch', TMPDIR: '/scratch', XDG_CACHE_HOME: '/scratch/cache' };
const film = { download_type: 'audio_video', video_quality: 'best' };
const jobs = {
  'a film': { path: '/films/clip.mp4', args: { ...film, video_format: 'mp4' }, type: 'video/mp4' },
  'a stream in pieces': {
    path: '/films/hls/list.m3u8',
    args: { ...film, video_format: 'mkv' },
    type: 'video/x-matroska',
  },
  'the sound of a film': {
    path: '/films/clip.mp4',
    args: { download_type: 'audio', audio_quality: 'best', audio_format: 'mp3' },
    type: 'audio/mpeg',
  },
};

describe('The worker image under a read-only root', () => {
  let images: Images;
  let source: Source;
  let proxy: TestProxy;

  before(async function () {
    this.timeout(buildMilliseconds);
    images = openImages();
    source = await startSource();
    proxy = await startProxy((host) => host === source.host);
  });
  after(async () => {
    await proxy?.stop();
    await source?.stop();
    images?.close();
  });

  for (const [title, { path, args, type }] of Object.entries(jobs)) {
    it(`finishes a whole job: ${title}`, async () => {
      const { folder, remove } = aFolder();
      const endpoint = type.startsWith('audio') ? 'audio' : 'video';
      const gateway = await startGateway({ folder, order: { endpoint, args: { query: source.url + path, ...args } } });
      writeFileSync(join(folder, 'token'), token);
      writeFileSync(join(folder, 'end'), '');
      chmodSync(folder, 0o755);
      for (const name of ['gateway', 'end']) chmodSync(join(folder, name), 0o666);
      try {
        const { code, err } = await runImage(images.worker, {
          args: ['worker', '--token-file', '/gate/token'],
          env: {
            ...places,
            TRAWL_GATEWAY_ADDRESS: 'unix:/gate/gateway',
            TRAWL_EGRESS_ADDRESS: proxy.url,
            TRAWL_TERMINATION_FILE: '/gate/end',
          },
          folders: { '/gate': folder },
        });
        expect(gateway.verdicts, err).to.have.lengthOf(1);
        expect(gateway.verdicts[0], err).to.deep.include({ is: 'done' });
        expect(gateway.objects.get('object')?.type).to.equal(type);
        expect(code, err).to.equal(0);
        // The pod is the sandbox, so a worker without its own does not warn.
        expect(err).to.not.include('sandbox');
      } finally {
        await gateway.stop();
        remove();
      }
    });
  }

  it('answers the metadata of a film as the inspector', async () => {
    const { folder, remove } = aFolder();
    chmodSync(folder, 0o777);
    const inspector = startImage(images.worker, {
      args: ['inspector', '--lifeline'],
      env: {
        ...places,
        TRAWL_INSPECTOR_ADDRESS: 'unix:/gate/inspector',
        TRAWL_EGRESS_ADDRESS: proxy.url,
        TRAWL_PROBE_PORT: '0',
      },
      folders: { '/gate': folder },
    });
    try {
      await until(() => existsSync(join(folder, 'inspector')), 60, 'the inspector listens');
      const answer = await ask(join(folder, 'inspector'), `${source.url}/films/clip.mp4`);
      expect(answer).to.deep.include({ status: 200 });
      expect(JSON.parse(answer.body)).to.have.nested.property('metadata.duration', 4);
    } finally {
      inspector.process.stdin.end();
      const { err } = await inspector.said;
      remove();
      expect(err).to.not.include('"level":"error"');
    }
  });
});

function ask(socketPath: string, url: string): Promise<{ status: number; body: string }> {
  const asking = request({ socketPath, method: 'POST', path: '/inspect', agent: false });
  return new Promise((resolve, reject) => {
    asking.once('error', reject).once('response', async (answer) => {
      resolve({ status: answer.statusCode ?? 0, body: await text(answer) });
    });
    asking.end(JSON.stringify({ url, account: '' }));
  });
}
