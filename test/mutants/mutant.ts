/** One line broken on purpose, and the test that must see it. */
export interface Mutant {
  /** Rows of docs/contract.md that the line serves. */
  readonly rows: readonly string[];
  readonly file: string;
  /** Stands once in the file. */
  readonly from: string;
  readonly to: string;
  readonly test: string;
  /** The beginning of the full title of the tests that are run, as mocha joins it. */
  readonly grep: string;
}
