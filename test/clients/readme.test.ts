import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { clientPython, clientPythonPath } from '../support/client-driver.ts';
import { type Customer, makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { read, root } from '../support/tree.ts';

const films = 'https://media.w3.org/2010/05/sintel/';
const id = '0b6f2f5e-6f52-4d3a-9d6c-3a1f5f0c7e11';
const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
/** Programs that put a genuine post and a false one to the receiver of the last example. */
const receivers = {
  typescript: `
for (const wanted of JSON.parse(process.env.POSTS!)) {
  const { status } = await receive(new Request('http://receiver.example/', { method: 'POST', ...wanted }));
  if (status !== wanted.status) throw new Error(\`\${status} instead of \${wanted.status}\`);
}
`,
  python: `
import json, threading, urllib.error, urllib.request
from http.server import HTTPServer
Receiver.log_message = lambda *_: None
server = HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
for wanted in json.loads(os.environ["POSTS"]):
    url = f"http://127.0.0.1:{server.server_port}/"
    request = urllib.request.Request(url, wanted["body"].encode(), wanted["headers"])
    try:
        status = urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        status = error.code
    assert status == wanted["status"], status
server.shutdown()
server.server_close()
`,
};

describe('the READMEs of the clients', function () {
  this.timeout(120_000);
  const service: Service = makeService({ TRAWL_WORKERS: '2' });
  let source: Source;
  let customer: Customer;
  before(async () => {
    source = await startSource();
    await service.start();
    customer = await service.aCustomer();
    installTypescript(service.folder);
  });
  after(async () => {
    await service.close();
    await source.stop();
  });

  for (const language of ['typescript', 'python'] as const) {
    const examples = examplesOf(read(`clients/${language}/README.md`), language === 'typescript' ? 'ts' : 'python');

    it(`${language}: there are six examples`, () => {
      expect(examples).to.have.length(6);
    });

    for (const [n, { code, output }] of examples.entries()) {
      it(`${language}: example ${n + 1} prints what stands below it`, async () => {
        const isReceiver = n === 4;
        const program = `${code.replaceAll(films, `${source.url}/films/`)}${isReceiver ? receivers[language] : ''}`;
        const path = join(service.folder, language === 'typescript' ? `example-${n}.ts` : `example-${n}.py`);
        writeFileSync(path, program.replaceAll(/\btrailer\.mp4\b/g, 'clip.mp4'));
        const command = language === 'typescript' ? process.execPath : clientPython();
        const said = await run(command, path, service.folder, {
          TRAWL_API_URL: service.up().url,
          TRAWL_API_KEY: customer.key,
          WEBHOOK_SECRET: secret,
          POSTS: JSON.stringify(posts()),
        });
        expect([said.code, said.out], said.err).to.deep.equal([0, output.replaceAll('trailer', 'clip')]);
        if (n === 0) expect(statSync(join(service.folder, 'film.mp4')).size).to.be.above(1000);
      });
    }
  }

  it('typescript: the package holds what package.json names, and no test or source', () => {
    const names = readFileSync(join(service.folder, 'packed'), 'utf8').trim().split('\n').sort();
    const stems = ['error-codes', 'errors', 'follow-job', 'patience', 'result-file', 'transport', 'trawl', 'webhook'];
    const built = ['api-types', ...stems].flatMap((stem) => [`dist/${stem}.d.ts`, `dist/${stem}.js`]);
    expect(names).to.deep.equal([...built, 'LICENSE', 'README.md', 'package.json'].sort());
  });
});

/** Builds the package as it is published and lays it where examples find it. */
function installTypescript(folder: string): void {
  const package_ = join(folder, 'node_modules', 'trawl-client');
  mkdirSync(package_, { recursive: true });
  const from = join(root, 'clients/typescript');
  // Both would leave a cache of compiled code in the folder of temporary files.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' };
  execFileSync('tsc', ['-p', from, '--outDir', join(package_, 'dist')], { env });
  for (const name of ['package.json', 'README.md', 'LICENSE'])
    writeFileSync(join(package_, name), readFileSync(join(from, name)));
  const listed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: package_,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [packed] = JSON.parse(listed) as [{ files: { path: string }[] }];
  writeFileSync(join(folder, 'packed'), packed.files.map(({ path }) => path).join('\n'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
}

/** Every example of a page: its code, and the text below it that it prints. */
function examplesOf(page: string, language: string): { code: string; output: string }[] {
  const fence = '```';
  const pattern = new RegExp(`^${fence}${language}\\n(.*?)^${fence}\\n${fence}text\\n(.*?)^${fence}$`, 'gms');
  return [...page.matchAll(pattern)].map(([, code = '', output = '']) => ({ code, output }));
}

function posts() {
  const time = String(Math.floor(Date.now() / 1000));
  const body = JSON.stringify({ id, status: 'CompletedJob', result: { metadata: null, response: null } });
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`;
  const headers = { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature };
  const genuine = { body, headers, status: 204 };
  return [genuine, { ...genuine, body: body.replace('CompletedJob', 'Error'), status: 401 }];
}

/** Runs an example in a folder, with the packages of the clients in its reach. */
async function run(command: string, path: string, cwd: string, env: Readonly<Record<string, string>>) {
  const child = spawn(command, [path], { cwd, env: { PATH: process.env.PATH, PYTHONPATH: clientPythonPath, ...env } });
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (said.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (said.err += text));
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, ...said };
}
