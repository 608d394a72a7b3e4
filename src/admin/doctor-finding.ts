/** One result of `trawl doctor`, in one sentence. */
export interface Finding {
  /** `note`: works now, but the operator should know. */
  readonly level: 'ok' | 'note' | 'problem';
  readonly about: string;
  readonly text: string;
}

export function findingOf(
  well: boolean,
  about: string,
  text: string,
  otherwise: Finding['level'] = 'problem',
): Finding {
  return { level: well ? 'ok' : otherwise, about, text };
}
