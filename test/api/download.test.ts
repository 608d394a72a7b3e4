import { type ClientRequest, get } from 'node:http';
import { expect } from 'chai';
import { linkTo, longDone, startFiles, type TestFiles } from '../support/files.ts';
import { until } from '../support/until.ts';

describe('a download', () => {
  let files: TestFiles;
  before(async () => {
    files = await startFiles();
  });
  after(() => files.stop());
  beforeEach(() => files.serve(longDone));

  function begin(): ClientRequest {
    // An error is the end that the test makes.
    return get(files.origin + linkTo(longDone), { agent: false }).on('error', () => {});
  }

  it('leaves no file open when its caller disconnects at any moment', async () => {
    const warnings: string[] = [];
    const note = ({ message }: Error) => warnings.push(message);
    process.on('warning', note);
    for (let round = 0; round < 200; round += 1) {
      const asked = begin();
      const gone = new Promise((resolve) => asked.once('close', resolve));
      if (round % 4 === 0) asked.once('response', (answer) => answer.once('data', () => asked.destroy()));
      else if (round % 4 === 1) asked.once('response', () => asked.destroy());
      else setTimeout(() => asked.destroy(), round % 7);
      await gone;
    }
    await until(() => files.countOpen() === 0, 1, 'every file is closed');
    process.off('warning', note);
    // A file that nobody closed may be closed by the collector of garbage, which warns of it.
    expect([warnings, files.failed()]).to.deep.equal([[], 0]);
    const { status, body } = await files.ask(linkTo(longDone), 'GET', { range: 'bytes=-5' });
    expect([status, body]).to.deep.equal([206, 'long ']);
  });
});
