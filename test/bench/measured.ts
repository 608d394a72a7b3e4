/** One figure of a bench. */
export interface Measured {
  readonly what: string;
  readonly ratio: number;
  /** What the ratio must be; without it, it is only reported. */
  readonly bound?: { readonly least: number } | { readonly most: number };
  /** Where the ratio comes from. */
  readonly because: string;
}

/** What a file `*.bench.ts` exports under the name `measure`. */
export type Measure = () => AsyncIterable<Measured>;
