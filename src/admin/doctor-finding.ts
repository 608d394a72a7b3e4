/** What the doctor says about one thing, in one sentence. */
export interface Finding {
  /** `note`: nothing is wrong now, but somebody should know. */
  readonly level: 'ok' | 'note' | 'problem';
  readonly about: string;
  readonly text: string;
}

/** Gives a finding that is well when `well`, else of the level that it then has. */
export function findingOf(
  well: boolean,
  about: string,
  text: string,
  otherwise: Finding['level'] = 'problem',
): Finding {
  return { level: well ? 'ok' : otherwise, about, text };
}
