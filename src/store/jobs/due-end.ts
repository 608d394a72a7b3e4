import { type ScriptReply, text } from '../script.ts';

/**
 * Lua that ends a script with {'early', now} before `dueAt`, an argument that is '' where nothing ends for its age. A controller
 * knows TIME as of seconds ago: since then the clock of Redis may have gone back, and a new job would look a day old.
 */
export const refuseEarly = `if dueAt ~= '' and now < tonumber(dueAt) then return { 'early', now } end`;

/** Refusal of an end that is not due, with the time of the record at that moment. */
export interface Early {
  readonly done?: undefined;
  readonly refused: 'early';
  readonly now: number;
}

export function earlyOf([word, now]: ScriptReply): Early | null {
  return text(word) === 'early' ? { refused: 'early', now: Number(now) } : null;
}
