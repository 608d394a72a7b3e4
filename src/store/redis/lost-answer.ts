import { Refusal } from '../../base/errors.ts';

/** `unavailable` for a command that was sent and whose answer did not come: it may have run. */
export class LostAnswer extends Refusal {}
