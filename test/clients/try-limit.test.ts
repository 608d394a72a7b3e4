import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { root } from '../support/tree.ts';

const run = promisify(execFile);
/** Asks a service that never answers, while memory is collected all the time. */
const callProgram = `
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
/** Reads a file of which the service sends a half, under a time limit that nothing else refers to, while memory is collected all the time. */
const streamProgram = `
import { createServer } from 'node:http';
import { Trawl } from './trawl.js';
const server = createServer(({ url, headers }, response) => {
  if (url === '/file') return void response.write('half');
  const result = { response: \`http://\${headers.host}/file\`, bytes: 8, sha256: 'f', content_type: 'video/mp4' };
  response.end(JSON.stringify({ id: '1', status: 'CompletedJob', endpoint: '/v1/video/download', result }));
}).listen(0, '127.0.0.1', async () => {
  setInterval(gc, 100);
  const trawl = new Trawl({ url: \`http://127.0.0.1:\${server.address().port}\`, key: 'k' });
  const file = await trawl.wait('1', { wait: 'poll' });
  const reader = file.stream({ signal: AbortSignal.timeout(1_000) }).getReader();
  const never = new Promise((resolve) => setTimeout(resolve, 30_000, { name: 'never' }));
  await reader.read();
  console.log((await Promise.race([reader.read().catch((error) => error), never])).name);
  process.exit();
});
`;

/** Every Node of this machine: the package runs on older ones than this. */
function listNodes(): string[] {
  const found = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'));
  return [...new Set([process.execPath, ...found.filter(existsSync).map((path) => realpathSync(path))])];
}

describe('a try of a call, in typescript', () => {
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    await run(join(root, 'node_modules/.bin/tsc'), ['-p', join(root, 'clients/typescript'), '--outDir', folder]);
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'call.js'), callProgram);
    writeFileSync(join(folder, 'stream.js'), streamProgram);
  });
  after(() => rmSync(folder, { recursive: true }));

  const runEverywhere = async (program: string): Promise<string[]> => {
    const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' };
    const told = await Promise.all(
      listNodes().map((node) => run(node, ['--expose-gc', program], { cwd: folder, env })),
    );
    return [...new Set(told.map(({ stdout }) => stdout.trim()))];
  };

  it('ends after its time in every Node of this machine, however often memory is collected', async () => {
    expect(await runEverywhere('call.js')).to.deep.equal(['unreachable']);
  });

  it('of a file as a stream ends with the signal of its caller in every Node of this machine', async () => {
    expect(await runEverywhere('stream.js')).to.deep.equal(['TimeoutError']);
  });
});
