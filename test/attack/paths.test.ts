import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { programsOfOthers } from '../support/other-user.ts';
import { aFolder } from '../support/redis.ts';
import { sandboxes } from '../support/workspace.ts';
import { cling } from './escapes.ts';
import { attackInspector, attackWorker } from './hostile-attempt.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

/** Lays links to the victim wherever a worker might write, then fails so that the worker tries again. */
const lay = `
import os
if first:
    if os.path.isdir('tools'): os.rename('tools', 'own-tools')
    os.mkdir('tools')
    for name in ('tools/ffmpeg', 'tools/ffprobe', 'media.mp4', 'part1'): os.symlink(given['victim'], name)
    os.symlink(os.path.dirname(given['victim']), 'part2')
    report('laid')
failure = 'Did not get any data blocks'
`;

/**
 * Says that it has failed but lives on, and swaps a folder of many names, of which one is that of the victim, for a link as soon
 * as the trusted side begins to remove the folder.
 */
const swap = `
import os, signal, time
target, wanted = os.path.split(given['victim'])
if first:
    os.mkdir('part0')
    for n in range(given['names']): open(f'part0/a{n}', 'w').close()
    open(f'part0/{wanted}', 'w').close()
    report('waits')
    os.write(1, b'{"failed": {"class": [], "message": "did not get any data blocks", "stage": "inspect"}}\\n')
    end = time.monotonic() + 6
    while time.monotonic() < end and len(os.listdir('part0')) > given['names']: pass
    os.rename('part0', 'moved')
    os.symlink(target, 'part0')
    signal.pause()
`;

/** Leaves a link to the victim in place of the file that it was told to fetch. */
const replace = `
import os, signal, sys
formats = [{'format_id': 'x', 'url': source + '/film.mp4', 'ext': 'mp4', 'vcodec': 'h264', 'acodec': 'aac', 'height': 360, 'width': 640}]
os.write(1, json_of({'info': {'id': 'x', 'title': 'x', 'direct': True, 'formats': formats}}))
wanted = sys.stdin.readline()
os.symlink(given['victim'], 'part0')
report('laid')
os.write(1, json_of({'done': {}}))
signal.pause()
`;
const json = `
import json
def json_of(said): return (json.dumps(said) + '\\n').encode()
`;

describe('A yt-dlp that was taken over', () => {
  let source: HostileSource;
  const others = programsOfOthers();
  let victims: { readonly folder: string; readonly remove: () => void };
  let victim: string;
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());
  beforeEach(() => {
    source.reports.length = 0;
    victims = aFolder();
    mkdirSync(join(victims.folder, 'private'), { mode: 0o700 });
    victim = join(victims.folder, 'private', 'precious');
    writeFileSync(victim, 'precious', { mode: 0o600 });
  });
  afterEach(() => victims.remove());

  const isWhole = () => (existsSync(victim) ? readFileSync(victim, 'utf8') : 'gone');

  for (const sandbox of [...sandboxes, 'landlock-user'] as const) {
    const inside = () => ({ source, sandbox, ...(sandbox === 'landlock-user' && { programs: others() }) });
    it(`overwrites no file through links that it lays where a worker writes (sandbox ${sandbox})`, async () => {
      const { outcome, left } = await attackWorker({ ...inside(), url: source.lay(lay, { victim }) });
      expect(source.reports).to.deep.equal(['laid']);
      expect(isWhole()).to.equal('precious');
      expect(outcome).to.include({ is: 'failed', code: 'file_damaged' });
      expect(left).to.deep.equal([]);
    });

    it(`deletes no file by swapping a folder that a worker removes before its next try (sandbox ${sandbox})`, async () => {
      const { outcome, left } = await attackWorker({ ...inside(), url: source.lay(swap, { victim, names: 3000 }) });
      expect(source.reports).to.deep.equal(['waits']);
      expect(isWhole()).to.equal('precious');
      expect(outcome).to.include({ is: 'failed' });
      expect(left).to.deep.equal([]);
    });

    it(`deletes no file by swapping a folder that an inspector removes (sandbox ${sandbox})`, async () => {
      const { outcome, left } = await attackInspector({ ...inside(), url: source.lay(swap, { victim, names: 450 }) });
      expect(source.reports).to.deep.equal(['waits']);
      expect(isWhole()).to.equal('precious');
      expect(outcome).to.have.nested.property('failure.code', 'file_damaged');
      expect(left).to.deep.equal([]);
    });

    it(`has no foreign file read that it links in place of its download (sandbox ${sandbox})`, async () => {
      const url = source.lay(json + replace, { victim });
      const { outcome, log, left } = await attackWorker({ ...inside(), url });
      expect(source.reports, log).to.deep.equal(['laid']);
      expect(outcome, log).to.include({ is: 'failed', code: 'worker_failed' });
      expect(log).to.include('part0 is no regular file');
      expect(left).to.deep.equal([]);
    });

    for (const [part, attack] of [
      ['worker', attackWorker],
      ['inspector', attackInspector],
    ] as const) {
      it(`leaves no file and no process that has left its group (${part}, sandbox ${sandbox})`, async () => {
        const { outcome, log, left } = await attack({ ...inside(), url: source.lay(cling), seconds: 60 });
        expect(source.reports, `${JSON.stringify(outcome)} ${log}`).to.deep.equal(['clings']);
        expect(left).to.deep.equal([]);
      });
    }
  }
});
