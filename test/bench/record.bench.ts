import { compareAdmissions, compareDurability, compareScript } from './admissions.ts';
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
  yield await compareAdmissions();
  yield await compareSettles();
  yield await compareTakes();
  yield await compareDurability();
}
