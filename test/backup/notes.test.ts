import { expect } from 'chai';
import { checkBackup } from '../../src/admin/record-findings.ts';
import { noteBackupBegun, noteBackupTaken, readBackupNotes } from '../../src/store/backup/backup-notes.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import type { TestStore } from '../support/record.ts';

const hour = 3_600_000;

describe('the age of the last backup', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  it('is known from the first try on, and from the last that succeeded', async () => {
    expect(await readBackupNotes(store)).to.equal(null);
    await noteBackupBegun(store);
    const { firstBegun, lastTaken } = (await readBackupNotes(store))!;
    expect([Date.now() - firstBegun! < 60_000, lastTaken]).to.deep.equal([true, null]);
    store.advance(hour);
    await noteBackupBegun(store);
    await noteBackupTaken(store, 7);
    expect(await readBackupNotes(store)).to.deep.equal({ firstBegun, expectedSince: null, lastTaken: 7 });
  });

  it('is judged by the doctor', () => {
    const judge = (lastTaken: number | null, now: number) => {
      const { level, text } = checkBackup({ firstBegun: 1, expectedSince: null, lastTaken }, now);
      return `${level}: ${text}`;
    };
    expect(checkBackup(null, 0).text).to.match(/ever begun: .*record backup DIR/);
    expect(judge(null, 2)).to.match(/^note: .* ever completed/);
    expect(judge(0, 26 * hour)).to.equal(
      'ok: The last complete backup of the record was taken at 1970-01-01T00:00:00.000Z.',
    );
    expect(judge(0, 26 * hour + 1)).to.match(/^note: .*, more than 26 hours ago: `trawl admin record backup DIR`/);
    expect(judge(hour, 1)).to.equal(
      'note: The last complete backup of the record was taken at 1970-01-01T01:00:00.000Z, which is yet to come, because the clock of Redis was ahead: `trawl admin record backup DIR` takes one while the service runs.',
    );
  });
});
