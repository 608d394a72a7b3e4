import { compareAdmissions, compareDurability, compareScript } from './admissions.ts';
import type { Measured } from './measured.ts';
import { compareSettles } from './settles.ts';
import { compareTakes } from './takes.ts';

/** How fast the record is, against known yardsticks in the same run. */
export async function* measure(): AsyncGenerator<Measured> {
  yield await compareScript();
  yield await compareAdmissions();
  yield await compareSettles();
  yield await compareTakes();
  yield await compareDurability();
}
