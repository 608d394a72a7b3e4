import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runTool } from '../support/chart.ts';
import { freePort } from '../support/free-port.ts';
import { makeService } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { read, root } from '../support/tree.ts';

describe('the program of helm test', () => {
  const service = makeService({ TRAWL_WORKERS: '1' });
  let source: Source;
  before(async () => {
    source = await startSource();
  });
  after(async () => {
    await service.close();
    await source?.stop();
  });

  it('passes for a healthy service whose public URL has a path, which the API itself does not know', async () => {
    const port = await freePort();
    const publicUrl = `http://127.0.0.1:${port}/films/files`;
    await service.start({ TRAWL_PORT: String(port), TRAWL_PUBLIC_URL: publicUrl });
    const program = join(service.folder, 'job.ts');
    writeFileSync(program, read('charts/trawl/files/test-job.ts').replaceAll('/opt/trawl/', `${root}/`));
    const env = {
      ...{ PATH: process.env.PATH, TRAWL_DATA: service.data, TRAWL_PUBLIC_URL: publicUrl },
      ...{ API_URL: `http://127.0.0.1:${port}`, FILM: `${source.url}/films/clip.mp4`, SECONDS: '60' },
    };
    const { stdout } = await runTool(process.execPath, [program], { env });
    expect(stdout).to.match(/^The file is there: \d{4,} bytes with the SHA-256 of its job\nThe job was charged once$/m);
  });
});
