/** One result of `trawl doctor`, in one sentence. */
export interface Finding {
  /** `note`: works now, but the operator should know. */
  readonly level: 'ok' | 'note' | 'problem';
  readonly about: string;
  readonly text: string;
}

/** Returns the finding about a thing: the first sentence when it is well, else the second one. */
export function judged(
  about: string,
  isWell: boolean,
  well: string,
  ill: string,
  otherwise?: Finding['level'],
): Finding {
  return findingOf(isWell, about, isWell ? well : ill, otherwise);
}

/** Messages of others, which many texts end with, may bring a full stop or a line break of their own. */
export function findingOf(
  well: boolean,
  about: string,
  text: string,
  otherwise: Finding['level'] = 'problem',
): Finding {
  return { level: well ? 'ok' : otherwise, about, text: text.replace(/[\s.:]+\.$/, '.') };
}
