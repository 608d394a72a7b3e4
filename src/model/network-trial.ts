import { membersOf, parseJson } from '../base/parse-json.ts';

/** Ways of a worker pod that are not as network policies want them, as addresses. */
export interface NetworkTrial {
  /** Addresses that workers need and the pod does not reach. */
  readonly missed: readonly string[];
  /** Addresses that are closed to workers and that the pod reaches. */
  readonly open: readonly string[];
  /** Release of the kernel under the pod. */
  readonly kernel: string;
}

/** Returns the trial that a pod has left as JSON, `null` for any other text. */
export function readNetworkTrial(text: string): NetworkTrial | null {
  const { missed, open, kernel } = membersOf(parseJson(text));
  return isTexts(missed) && isTexts(open) && typeof kernel === 'string' ? { missed, open, kernel } : null;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
