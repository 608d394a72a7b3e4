import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { codeOf } from '../../src/base/errors.ts';
import { writePrivateFile } from '../../src/base/private-file.ts';
import { failureOf } from '../support/failure.ts';
import { aFolder } from '../support/redis.ts';

const runFile = promisify(execFile);
const program = `
const { writePrivateFile } = await import(process.argv[1]);
for (let n = 0; n < 50; n++) await writePrivateFile(process.argv[2], 'secret');
`;

describe('a private file', () => {
  let folder: string;
  let remove: () => void;
  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(() => remove());

  it('is written by two processes at once', async () => {
    const code = new URL('../../src/base/private-file.ts', import.meta.url).href;
    const words = ['--input-type=module', '-e', program, code, join(folder, 'a')];
    await Promise.all([0, 1].map(() => runFile(process.execPath, words)));
    expect(readdirSync(folder)).to.deep.equal(['a']);
  });

  it('leaves no copy of its text when it cannot be put in its place', async () => {
    const file = join(folder, 'a');
    mkdirSync(join(file, 'b'), { recursive: true });
    expect(codeOf(await failureOf(writePrivateFile(file, 'secret')))).to.equal('EISDIR');
    expect(readdirSync(folder)).to.deep.equal(['a']);
  });
  it('takes the place of what a process left that ended while it wrote the file, and of nothing else', async () => {
    const file = join(folder, 'a');
    const ended = spawnSync('true').pid;
    const others = [`a.new-${process.ppid}`, `a.${ended}`, 'a.new-', `ba.new-${ended}`];
    for (const name of [...others, `a.new-${ended}`]) writeFileSync(join(folder, name), 'half');
    await writePrivateFile(file, 'secret');
    expect(readdirSync(folder)).to.have.members(['a', ...others]);
  });
});
