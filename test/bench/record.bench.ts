import { compareAdmissions, compareDurability, compareJoining, compareScript } from './admissions.ts';
import { compareChecksums } from './checksums.ts';
import { compareDeflaters } from './deflated-texts.ts';
import type { Measurement } from './measurement.ts';
import { compareSettles } from './settlements.ts';
import { compareTakes } from './takes.ts';

/** The speed of the record against known yardsticks in the same run. */
export async function* measure(): AsyncGenerator<Measurement> {
  yield compareChecksums();
  yield compareDeflaters();
  yield await compareScript();
  yield await compareAdmissions(1);
  yield await compareAdmissions(100);
  yield await compareJoining('one key', {}, { most: 0.5 });
  yield await compareJoining('100 keys, a fifth by the first', { accounts: 100, isSkewed: true }, { most: 0.9 });
  yield await compareJoining('100 keys, each as many', { accounts: 100 });
  yield await compareSettles();
  yield await compareTakes();
  yield await compareDurability();
}
