import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { clientPython, clientPythonPath } from '../support/client-driver.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

const half = 64 * 1024;
const contentOf = (id: string) => id.repeat(2 * half);
const longest = `${'n'.repeat(251)}.mp4`;

describe('the Python client', () => {
  let server: Server;
  let parent: string;
  let removeParent: () => void;
  let folder: string;
  /** Answers whose first half was sent. */
  let held: ServerResponse[];
  /** Of the file `p` and of the usage, one after another. */
  let answers: ((response: ServerResponse) => void)[];
  /** Never answered. */
  let metadataCall: ServerResponse | undefined;
  before(async () => {
    ({ folder: parent, remove: removeParent } = aFolder());
    server = createServer(({ url = '', headers }, response) => {
      if (url === '/v1/media/metadata') {
        metadataCall = response;
        return;
      }
      if (url === '/v1/usage') return void answers.shift()?.(response);
      const id = url.split('/').at(-1)!.split('?')[0]!;
      const bytes = contentOf(id);
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const result = {
        response: `http://${headers.host}/files/${id}`,
        bytes: bytes.length,
        sha256,
        content_type: 'video/mp4',
      };
      if (!url.startsWith('/files/'))
        return void response.end(
          JSON.stringify({ id, status: 'CompletedJob', endpoint: '/v1/video/download', result }),
        );
      if (id === 'p') return void answers.shift()?.(response);
      if (id !== 'a') return void response.end(bytes);
      response.writeHead(200, { 'content-length': bytes.length }).write(bytes.slice(half), () => held.push(response));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
    removeParent();
  });
  beforeEach(() => {
    folder = mkdtempSync(join(parent, 'saved-'));
    held = [];
  });

  /** Runs a program; `say` writes a line to its standard input. */
  const run = (program: string) => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { ...process.env, PYTHONPATH: clientPythonPath, URL: url };
    const child = spawn(clientPython(), ['-B', '-c', `import os\nfrom trawl_client import *\n${program}`], {
      cwd: folder,
      env,
    });
    const said = { out: '', err: '' };
    child.stdout.setEncoding('utf8').on('data', (text) => (said.out += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (said.err += text));
    const ended = new Promise<[unknown, string, string]>((resolve) =>
      child.once('close', (code) => resolve([code, said.out, said.err])),
    );
    return { said, ended, say: () => void child.stdin.write('\n'), interrupt: () => void child.kill('SIGINT') };
  };

  for (const [kind, saveBoth] of [
    [
      'threads',
      `
import sys, threading
client = Trawl(os.environ["URL"], "k")
files = [client.wait(job_id, wait="poll") for job_id in "ab"]
first = threading.Thread(target=files[0].save, args=["film.mp4"])
first.start()
sys.stdin.readline()
files[1].save("film.mp4")
print("saved", flush=True)
first.join()
`,
    ],
    [
      'tasks',
      `
import asyncio, sys
async def main():
    client = AsyncTrawl(os.environ["URL"], "k")
    files = [await client.wait(job_id, wait="poll") for job_id in "ab"]
    first = asyncio.create_task(files[0].save("film.mp4"))
    await asyncio.to_thread(sys.stdin.readline)
    await files[1].save("film.mp4")
    print("saved", flush=True)
    await first
asyncio.run(main())
`,
    ],
  ] as const) {
    it(`gives a path to one whole file after another when two ${kind} save to it at once`, async () => {
      const running = run(saveBoth);
      await until(() => held.length === 1, 20, 'half of the first file');
      running.say();
      await until(() => running.said.out === 'saved\n', 20, `the second file is saved: ${running.said.err}`);
      expect(readFileSync(join(folder, 'film.mp4'), 'utf8') === contentOf('b')).to.equal(true);
      held[0]!.end(contentOf('a').slice(half));
      expect(await running.ended).to.deep.equal([0, 'saved\n', '']);
      expect(readFileSync(join(folder, 'film.mp4'), 'utf8') === contentOf('a')).to.equal(true);
      expect(readdirSync(folder)).to.deep.equal(['film.mp4']);
    });
  }

  it('saves a file under the longest name, and leaves the partial file of another program alone', async () => {
    writeFileSync(join(folder, 'film.mp4.part'), 'of another program');
    const ended = await run(`
file = Trawl(os.environ["URL"], "k").wait("b", wait="poll")
file.save("film.mp4")
file.save("${longest}")
`).ended;
    expect(ended).to.deep.equal([0, '', '']);
    expect(readdirSync(folder).sort()).to.deep.equal(['film.mp4', 'film.mp4.part', longest]);
    expect(readFileSync(join(folder, 'film.mp4.part'), 'utf8')).to.equal('of another program');
  });

  for (const [kind, program] of [
    ['threads', 'print(Trawl(os.environ["URL"], "k").wait("p", wait="poll").read() == b"p" * 131072)'],
    [
      'tasks',
      `
import asyncio
async def main():
    file = await AsyncTrawl(os.environ["URL"], "k").wait("p", wait="poll")
    print(await file.read() == b"p" * 131072)
asyncio.run(main())
`,
    ],
  ] as const) {
    it(`takes neither the page of a proxy nor another part of a file for the part that was asked for, with ${kind}`, async () => {
      const [page, whole] = ['<html>Please sign in</html>', contentOf('p')];
      const part = (first: number) => ({ 'content-range': `bytes ${first}-${whole.length - 1}/${whole.length}` });
      answers = [
        (response) => response.setHeader('content-length', page.length).end(page),
        (response) => response.setHeader('content-type', 'text/html').end(page),
        (response) =>
          response
            .writeHead(200, { 'content-length': whole.length })
            .write(whole.slice(half), () => response.destroy()),
        (response) => response.writeHead(206, part(0)).end('q'.repeat(whole.length)),
        (response) => response.writeHead(206, part(half)).end(whole.slice(half)),
      ];
      expect(await run(program).ended).to.deep.equal([0, 'True\n', '']);
      expect(answers).to.have.length(0);
    });
  }

  for (const [kind, usage] of [
    ['threads', 'Trawl(os.environ["URL"], "k").usage()'],
    ['tasks', 'asyncio.run(read())'],
  ] as const) {
    it(`repeats a first call that broke off while its caller handles a wrong certificate of another host, with ${kind}`, async () => {
      answers = [(response) => response.destroy(), (response) => response.end('{"remaining":7}')];
      const ended = await run(`
import asyncio, ssl
async def read():
    return await AsyncTrawl(os.environ["URL"], "k").usage()
try:
    raise ssl.SSLCertVerificationError("of another host")
except ssl.SSLError:
    print(${usage}["remaining"])
`).ended;
      expect(ended).to.deep.equal([0, '7\n', '']);
    });
  }

  it('has errors that cross the border of a process', async () => {
    const ended = await run(`
import copy, pickle
error = TrawlError("made_up", "Slow", status=429, job_id="j", request_id="r", retry_after_seconds=3, retryable=True)
for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
    assert (type(same), str(same), vars(same)) == (TrawlError, "Slow", vars(error)), vars(same)
`).ended;
    expect(ended).to.deep.equal([0, '', '']);
  });

  it('closes the connection of a call that is interrupted, which is then not charged, while its program goes on', async () => {
    const running = run(`
import sys
try:
    Trawl(os.environ["URL"], "k").metadata("https://films.example/clip.mp4")
except KeyboardInterrupt:
    sys.stdin.readline()
`);
    await until(() => metadataCall !== undefined, 20, 'metadata is asked for');
    running.interrupt();
    await until(() => metadataCall?.destroyed, 10, 'the connection is closed');
    running.say();
    expect(await running.ended).to.deep.equal([0, '', '']);
  });
});
