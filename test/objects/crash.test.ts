import { execFileSync, spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { bodyOf } from './object-store.contract.ts';

const uploader = join(import.meta.dirname, 'uploader.ts');
const content = 'The bytes of a film';
const seen = { bytes: content.length, checksum: hash('sha256', content) };
const key = 'kept/1/media.mp4';
const full = { code: 'unavailable', message: 'The storage of finished files is full' };
const readOnly = { code: 'unavailable', message: 'The storage of finished files can only be read' };

let folder: string;
let store: FolderStore;

function useFolder(): void {
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'objects-'));
    store = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
  });
  afterEach(() => rmSync(folder, { recursive: true }));
}

async function put(): Promise<unknown> {
  return store.receive(await store.permit(key, { bytes: content.length }), bodyOf(content));
}

/** Starts a program that uploads, and kills it some time after it has said a word. */
async function killAfter(word: string, delayMs: number, step: string): Promise<void> {
  const child = spawn(process.execPath, [uploader, folder, step], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  let said = '';
  for await (const chunk of child.stdout) {
    said += chunk;
    if (said.includes(word)) break;
  }
  await pause(delayMs);
  child.kill('SIGKILL');
  await ended;
}

/** Runs a program in the folder as mounted in another way, and returns its output. */
function workMounted(mount: readonly string[], steps: readonly string[]): unknown[] {
  const bwrap = ['--dev-bind', '/', '/', ...mount, folder, process.execPath, uploader, folder, ...steps];
  return execFileSync('bwrap', bwrap, { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** The reason why nothing can be mounted here, or null. */
function findObstacle(): string | null {
  try {
    execFileSync('bwrap', ['--dev-bind', '/', '/', '--tmpfs', tmpdir(), 'true'], { stdio: 'pipe' });
    return null;
  } catch (error) {
    return `bubblewrap cannot mount here: ${error instanceof Error ? error.message : error}`;
  }
}

describe('an upload that is killed', () => {
  useFolder();

  it('an upload that is killed in its middle leaves no object, and the next one succeeds', async () => {
    await killAfter('stopped', 0, 'stop=1000000');
    expect(await store.see('job/1/1000000')).to.equal(null);
    expect(await readdir(folder)).to.deep.equal(['.uploads']);
    expect(await readdir(join(folder, '.uploads'))).to.have.length(1);
    expect(await store.sweepTemporary(Number.POSITIVE_INFINITY)).to.equal(1);
    expect(await readdir(join(folder, '.uploads'))).to.deep.equal([]);
    expect(await put()).to.deep.equal(seen);
  });

  for (const delayMs of [0, 10, 20, 40, 80]) {
    it(`after ${delayMs} ms leaves the whole object or none`, async () => {
      await killAfter('ready', delayMs, 'upload=4000000');
      const found = await store.see('job/1/4000000');
      const opened = await store.open('job/1/4000000');
      if (opened?.is !== 'stream') return expect(found).to.equal(null);
      expect(found).to.deep.equal({ bytes: 4_000_000, checksum: hash('sha256', await buffer(opened.stream)) });
    });
  }
});

const obstacle = findObstacle();
if (obstacle !== null) console.log(`Left out: a full disk and one that can only be read. ${obstacle}`);

describe('an object folder on a disk that takes nothing', () => {
  if (obstacle !== null) return;
  useFolder();

  it('says that it is full, keeps nothing of the upload, and goes on when there is room', () => {
    const steps = ['upload=2000000', 'left', 'see=job/1/2000000', 'upload=500000', 'upload=600000', 'left'];
    const answers = workMounted(['--size', '1048576', '--tmpfs'], [...steps, 'remove=job/', 'upload=600000']);
    const [ready, tooMuch, left, absent, taken, tooMuchAgain, leftAgain, removed, takenAgain] = answers;
    expect([ready, tooMuch, left, absent]).to.deep.equal(['ready', full, [], null]);
    expect(taken).to.include({ bytes: 500_000 });
    expect([tooMuchAgain, leftAgain, removed]).to.deep.equal([full, [], null]);
    expect(takenAgain).to.include({ bytes: 600_000 });
  });

  it('writes nothing of a file that does not fit: the record may be on the same disk', () => {
    const [, tried] = workMounted(['--size', '1048576', '--tmpfs'], ['most=2000000']);
    expect(tried).to.deep.equal({ code: 'unavailable', most: 0 });
  });

  it('says that it can only be read, and goes on reading', async () => {
    await put();
    const answers = workMounted(['--ro-bind', folder], [`see=${key}`, 'upload=1', 'remove=kept/', `see=${key}`]);
    expect(answers).to.deep.equal(['ready', seen, readOnly, readOnly, seen]);
  });
});
