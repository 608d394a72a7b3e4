/** One figure of a bench. */
export interface Measurement {
  readonly what: string;
  readonly ratio: number;
  /** The limit of the ratio; without it, the ratio is only reported. */
  readonly bound?: { readonly least: number } | { readonly most: number };
  /** File whose gain the ratio is: with it against without it. Its first line tells it. */
  readonly optimisation?: string;
  /** The figures behind the ratio. */
  readonly because: string;
}

/** The type of `measure`, which every file `*.bench.ts` exports. */
export type Measure = () => AsyncIterable<Measurement>;
