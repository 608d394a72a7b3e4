/** One result of `trawl doctor`, in one sentence. */
export interface Finding {
  /** `note`: works now, but the operator should know. */
  readonly level: 'ok' | 'note' | 'problem';
  readonly about: string;
  readonly text: string;
}

export const fine = (about: string, text: string): Finding => findingOf('ok', about, text);
export const note = (about: string, text: string): Finding => findingOf('note', about, text);
export const problem = (about: string, text: string): Finding => findingOf('problem', about, text);

/** Returns the finding about a thing: the first sentence when it is well, else the second one. */
export function judged(
  about: string,
  isWell: boolean,
  well: string,
  ill: string,
  otherwise: Finding['level'] = 'problem',
): Finding {
  return isWell ? fine(about, well) : findingOf(otherwise, about, ill);
}

/** Messages of others, which many texts end with, may bring a full stop or a line break of their own. */
export function findingOf(level: Finding['level'], about: string, text: string): Finding {
  return { level, about, text: text.replace(/[\s.:]+\.$/, '.') };
}
