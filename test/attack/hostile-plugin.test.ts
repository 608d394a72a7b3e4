import { expect } from 'chai';
import { sandboxes } from '../support/workspace.ts';
import { attackInspector, attackWorker } from './hostile-attempt.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

const introduction = `
import os
report(f"{given['word']} {os.path.basename(os.getcwd())} {first}")
failure = 'Did not get any data blocks'
`;

describe('The plugin that stands for a yt-dlp that was taken over', () => {
  let source: HostileSource;
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());

  for (const sandbox of sandboxes) {
    it(`runs the text of a test in both tries of a worker and reports through egress (sandbox ${sandbox})`, async () => {
      source.reports.length = 0;
      const { outcome, log, left } = await attackWorker({
        source,
        sandbox,
        url: source.lay(introduction, { word: 'hi' }),
      });
      expect(source.reports, log).to.deep.equal(['hi job True', 'hi job False']);
      expect(outcome).to.include({ is: 'failed', code: 'file_damaged' });
      expect(left).to.deep.equal([]);
    });

    it(`runs the text of a test in the inspector and reports through egress (sandbox ${sandbox})`, async () => {
      source.reports.length = 0;
      const { outcome, left } = await attackInspector({
        source,
        sandbox,
        url: source.lay(introduction, { word: 'ho' }),
      });
      expect(source.reports.join()).to.match(/^ho r\w+ True$/);
      expect(outcome).to.have.nested.property('failure.code', 'file_damaged');
      expect(left).to.deep.equal([]);
    });
  }
});
