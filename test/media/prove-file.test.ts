import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { containers } from '../../src/media/container.ts';
import { refuseOtherSizes } from '../../src/media/picture-sizes.ts';
import { probeFile, readProbe } from '../../src/media/probe-file.ts';
import { prove } from '../../src/media/prove-file.ts';
import type { MediaTools } from '../../src/media/tools.ts';
import { aTools } from '../support/media.ts';
import { aFolder } from '../support/redis.ts';

const plan = {
  ...{ container: containers.m4a, video: false, audio: true },
  ...{ output: null, encodes: false, starts: [0], length: null },
};
const streams = [{ codec_type: 'audio', codec_name: 'aac', nb_read_packets: '1' }];

describe('The tolerance of a length (D92)', () => {
  const { folder, remove } = aFolder();
  let tools: MediaTools;
  before(() => {
    tools = aTools(folder, '');
  });
  after(remove);

  /** Proves a file of this length; returns what was found to be damaged, or null. */
  const faultOf = async (duration: number, promised: number) => {
    const file = join(folder, 'film.m4a');
    writeFileSync(file, 'bytes');
    const probe = readProbe({ format: { format_name: 'mov,mp4,m4a', duration: String(duration) }, streams });
    const known = { probe, ended: { code: 0, signal: null, stderr: '' }, count: 'shown' as const };
    const proven = prove(file, { plan, promised, known }, tools, new AbortController().signal);
    return proven.then(
      () => null,
      ({ code, detail }) => `${code}: ${detail}`,
    );
  };

  for (const [title, promised, seconds] of [
    ['is two seconds for a short film', 10, 2],
    ['is two seconds for a film of forty', 40, 2],
    ['D92: is a twentieth of a long film', 1000, 50],
  ] as const) {
    it(title, async () => {
      for (const length of [promised - seconds, promised + seconds])
        expect(await faultOf(length, promised), `${length} s`).to.equal(null);
      for (const length of [promised - seconds - 0.01, promised + seconds + 0.01])
        expect(await faultOf(length, promised)).to.equal(
          `file_damaged: lasts ${length} s, promised were ${promised} s`,
        );
    });
  }
});

describe('An ffmpeg that was taken over', () => {
  it('writes no line without end into the memory of the worker, which would end with it', async () => {
    const { folder, remove } = aFolder();
    const file = join(folder, 'part0');
    const run: MediaTools['run'] = () => {
      writeFileSync(`${file}.headers`, Buffer.alloc(2 ** 20, 'x,'));
      return { write: () => undefined, ended: Promise.resolve({ code: 0, signal: null, stderr: '' }) };
    };
    const probe = readProbe({
      format: { format_name: 'mpegts' },
      streams: [{ codec_type: 'video', codec_name: 'h264' }],
    });
    const judged = refuseOtherSizes(
      { file },
      probe,
      false,
      { ...aTools(folder, ''), run },
      new AbortController().signal,
    );
    const told = await judged.then(
      () => null,
      ({ code, detail }) => `${code}: ${detail}`,
    );
    expect(told).to.equal('worker_failed: part0.headers has a line of more than 65536 characters');
    remove();
  });
});

describe('An ffprobe that was taken over', () => {
  it('is ended when it has told more than is true of any file, before its lines fill the memory of the worker', async () => {
    const { folder, remove } = aFolder();
    const tools = aTools(folder, '');
    const ffprobe = join(folder, 'ffprobe');
    writeFileSync(ffprobe, '#!/bin/sh\nexec yes ""\n', { mode: 0o755 });
    let lines = 0;
    const run: MediaTools['run'] = (command, args, options) =>
      tools.run(command, args, {
        ...options,
        onLine: (line) => {
          lines++;
          options.onLine?.(line);
        },
      });
    const found = probeFile(ffprobe, 'none', { ...tools, ffprobe, run }, new AbortController().signal);
    expect(await found.catch(({ code, detail }) => `${code}: ${detail}`)).to.equal(
      'file_damaged: ffprobe tells too much',
    );
    expect(lines).to.be.below(2 ** 24);
    remove();
  });
});
