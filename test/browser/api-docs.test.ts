import { spawn } from 'node:child_process';
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.ts';
import { aFolder } from '../support/redis.ts';

describe('/docs', function () {
  // Chromium takes seconds to start, and more on a busy machine.
  this.timeout(100_000);
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  it('/docs shows every operation in Chromium, and nothing breaks its policy', async () => {
    const { dom, said } = await openInChromium(`${api.url}/docs`);
    for (const shown of ['Start a video download', 'Show what became of the requests', 'A download has ended']) {
      expect(dom, said).to.contain(shown);
    }
    expect(said).to.not.match(/Content Security Policy|Refused to|ERR_|Uncaught/);
  });
});

/** Opens a page without a network beside loopback; returns its document and what the browser says of it. */
async function openInChromium(url: string): Promise<{ dom: string; said: string }> {
  const { folder, remove } = aFolder();
  const quiet = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--disable-background-networking',
  ];
  const watch = ['--enable-logging=stderr', '--log-level=0', '--virtual-time-budget=20000', '--dump-dom'];
  const elsewhere = ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', `--user-data-dir=${folder}`];
  const child = spawn('chromium', [...quiet, ...elsewhere, ...watch, url], { env: { ...process.env, HOME: folder } });
  const read = { dom: '', said: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    read.dom += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    read.said += text;
  });
  await new Promise((resolve) => child.once('close', resolve));
  remove();
  // The browser itself looks for services that are not there; the page speaks by CONSOLE.
  return {
    dom: read.dom,
    said: read.said
      .split('\n')
      .filter((line) => line.includes('CONSOLE'))
      .join('\n'),
  };
}
