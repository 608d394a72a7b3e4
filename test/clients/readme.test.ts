import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { clientPython, clientPythonPath } from '../support/client-driver.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { read, root } from '../support/tree.ts';

const films = 'https://media.w3.org/2010/05/sintel/';
const languages = ['typescript', 'python'] as const;
type Language = (typeof languages)[number];
const fences: Readonly<Record<Language, string>> = { typescript: 'ts', python: 'python' };
/** Output and exit code of an example. */
interface Told {
  readonly code: unknown;
  readonly out: string;
  readonly err: string;
}
const id = '0b6f2f5e-6f52-4d3a-9d6c-3a1f5f0c7e11';
const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
/** Programs that put posts to the receiver of the fifth example. */
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

describe('the READMEs of the clients', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '2' });
  const told = new Map<Language, Promise<Told>[]>();
  let source: Source;
  before(async () => {
    [source] = await Promise.all([startSource(), service.start(), installTypescript(service.folder)]);
    for (const language of languages) told.set(language, runInTurn(language));
  });
  after(async () => {
    await Promise.all([...told.values()].flat());
    await service.close();
    await source.stop();
  });

  /** Runs the examples of a page one after another; those of the other page run beside them. */
  function runInTurn(language: Language): Promise<Told>[] {
    const folder = join(service.folder, language);
    mkdirSync(folder);
    const customer = service.aCustomer();
    let last: Promise<unknown> = customer;
    return examplesOf(language).map(({ code }, n) => {
      const told = last.then(async () => runExample(language, n, code, folder, (await customer).key));
      last = told;
      return told;
    });
  }

  function runExample(language: Language, n: number, code: string, folder: string, key: string): Promise<Told> {
    const program = `${code.replaceAll(films, `${source.url}/films/`)}${n === 4 ? receivers[language] : ''}`;
    const path = join(folder, `example-${n}.${fences[language]}`);
    writeFileSync(path, program.replaceAll(/\btrailer\.mp4\b/g, 'clip.mp4'));
    return run(language === 'typescript' ? process.execPath : clientPython(), [path], folder, {
      PATH: process.env.PATH,
      PYTHONPATH: clientPythonPath,
      TRAWL_API_URL: service.up().url,
      TRAWL_API_KEY: key,
      WEBHOOK_SECRET: secret,
      POSTS: JSON.stringify(posts()),
    });
  }

  for (const language of languages) {
    const examples = examplesOf(language);

    it(`${language}: there are six examples`, () => {
      expect(examples).to.have.length(6);
    });

    for (const [n, { output }] of examples.entries()) {
      it(`${language}: example ${n + 1} prints what stands below it`, async () => {
        const { code, out, err } = await told.get(language)![n]!;
        const printed = output.replaceAll('trailer', 'clip') + (n === 4 ? `${id} test\n` : '');
        expect([code, out], err).to.deep.equal([0, printed]);
        if (n === 0) expect(statSync(join(service.folder, language, 'film.mp4')).size).to.be.above(1000);
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
async function installTypescript(folder: string): Promise<void> {
  const package_ = join(folder, 'node_modules', 'trawl-client');
  mkdirSync(package_, { recursive: true });
  const from = join(root, 'clients/typescript');
  // Both would leave a cache of compiled code in the folder of temporary files.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' };
  const built = await run('tsc', ['-p', from, '--outDir', join(package_, 'dist')], folder, env);
  expect(built.code, built.out).to.equal(0);
  for (const name of ['package.json', 'README.md', 'LICENSE'])
    writeFileSync(join(package_, name), readFileSync(join(from, name)));
  const listed = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], package_, env);
  const [packed] = JSON.parse(listed.out) as [{ files: { path: string }[] }];
  writeFileSync(join(folder, 'packed'), packed.files.map(({ path }) => path).join('\n'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
}

/** Every example of a README: its code, and the text below it that it prints. */
function examplesOf(language: Language): { code: string; output: string }[] {
  const page = read(`clients/${language}/README.md`);
  const fence = '```';
  const pattern = new RegExp(`^${fence}${fences[language]}\\n(.*?)^${fence}\\n${fence}text\\n(.*?)^${fence}$`, 'gms');
  return [...page.matchAll(pattern)].map(([, code = '', output = '']) => ({ code, output }));
}

/** A post of a job, one of a dashboard test, which has no status, and a false one, each with the answer that it gets. */
function posts() {
  const ended = signedPost({ id, status: 'CompletedJob', result: { metadata: null, response: null } });
  const test = signedPost({ id, type: 'test', created_at: new Date().toISOString() });
  return [ended, test, { ...ended, body: ended.body.replace('CompletedJob', 'Error'), status: 401 }];
}

function signedPost(event: object) {
  const time = String(Math.floor(Date.now() / 1000));
  const body = JSON.stringify(event);
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`;
  const headers = { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature };
  return { body, headers, status: 204 };
}

async function run(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<Told> {
  const child = spawn(command, args, { cwd, env });
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (said.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (said.err += text));
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, ...said };
}
