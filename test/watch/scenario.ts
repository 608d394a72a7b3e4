export interface Scenario {
  readonly title: string;
  /** Series that differ from a healthy system, one value a minute for 400 minutes. */
  readonly change: Readonly<Record<string, string>>;
  /** The alerts that fire after 390 minutes. */
  readonly fires: Readonly<Record<string, Fired>>;
}

/** What an alert says when it fires. */
interface Fired {
  readonly summary: string;
  readonly description?: string;
  /** Its labels beside namespace and severity. */
  readonly labels?: Readonly<Record<string, string>>;
}
