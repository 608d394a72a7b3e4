import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { root } from '../support/tree.ts';

const run = promisify(execFile);
/** Asks a service that never answers, while memory is collected all the time. */
const program = `
import { createServer } from 'node:http';
import { Trawl } from './trawl.js';
const server = createServer(() => {}).listen(0, '127.0.0.1', async () => {
  setInterval(gc, 100);
  const trawl = new Trawl({ url: \`http://127.0.0.1:\${server.address().port}\`, key: 'k', patienceSeconds: 0 });
  const never = new Promise((resolve) => setTimeout(resolve, 100_000, 'never'));
  console.log(await Promise.race([trawl.usage().catch(({ code }) => code), never]));
  process.exit();
});
`;

/** Every Node of this machine: the package runs on older ones than this. */
function listNodes(): string[] {
  const found = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'));
  return [...new Set([process.execPath, ...found.filter(existsSync).map((path) => realpathSync(path))])];
}

describe('a try of a call, in typescript', function () {
  this.timeout(150_000);
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    await run(join(root, 'node_modules/.bin/tsc'), ['-p', join(root, 'clients/typescript'), '--outDir', folder]);
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'program.js'), program);
  });
  after(() => rmSync(folder, { recursive: true }));

  it('ends after its time in every Node of this machine, however often memory is collected', async () => {
    const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' };
    const words = ['--expose-gc', 'program.js'];
    const told = await Promise.all(listNodes().map((node) => run(node, words, { cwd: folder, env })));
    expect(told.map(({ stdout }) => stdout.trim())).to.deep.equal(told.map(() => 'unreachable'));
  });
});
