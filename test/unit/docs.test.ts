import { expect } from 'chai';
import { makeDocs } from '../../src/admin/generated-pages.ts';
import { failures, refusals } from '../../src/base/errors.ts';
import { tableOf } from '../../src/base/markdown-table.ts';
import { settings } from '../../src/base/settings/settings.ts';

function rowsOf(page: string | undefined, first: string): number {
  return page?.split('\n').filter((line) => line.startsWith(`| \`${first}\` |`)).length ?? 0;
}

describe('a Markdown table', () => {
  it('has a head, a line below it, and a line for each row, with bars escaped', () => {
    expect(tableOf(['a', 'b'], [['x|y', 1]])).to.equal('| a | b |\n| --- | --- |\n| x\\|y | 1 |\n');
  });
});

describe('generated pages', () => {
  const pages = makeDocs();

  it('are the same each time', () => expect(makeDocs()).to.deep.equal(pages));

  for (const [name, text] of Object.entries(pages)) {
    it(`${name} begins with a title and sentences, and ends with one line end`, () => {
      expect(text).to.match(/^# [A-Z][a-z]+\n\n[A-Z][^|]+\.\n/);
      expect(text)
        .to.match(/[^\n]\n$/)
        .and.not.match(/undefined|\n\n\n/);
    });
  }

  it('list every setting once', () => {
    for (const { name } of settings) expect(rowsOf(pages['config.md'], name), name).to.equal(1);
  });

  it('list every refusal and every failure once', () => {
    for (const code of [...Object.keys(refusals), ...Object.keys(failures)]) {
      expect(rowsOf(pages['errors.md'], code), code).to.equal(1);
    }
  });

  it('show the status and the sentence of an error code', () => {
    expect(pages['errors.md']).to.contain('| `payment_required` | 402 | Payment required |');
    expect(pages['errors.md']).to.contain('| `worker_failed` | us | yes | Error | 500 | The worker failed |');
  });

  it('list a metric once', () => expect(rowsOf(pages['metrics.md'], 'trawl_jobs_total')).to.equal(1));
});
