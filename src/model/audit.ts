/** Kinds of changes that the audit log notes: subject, then verb. */
export type AuditAction =
  | 'account.create'
  | 'account.change'
  | 'account.remove'
  | 'key.create'
  | 'key.change'
  | 'key.rotate'
  | 'key.delete'
  | 'plan.set'
  | 'plan.remove'
  | 'offer.set'
  | 'offer.remove'
  | 'pack.add'
  | 'credits.add'
  | 'topup.change'
  | 'person.invite'
  | 'person.remove'
  | 'person.password'
  | 'person.identity'
  | 'passkey.add'
  | 'passkey.remove'
  | 'block.clear'
  | 'drain.on'
  | 'drain.off'
  | 'record.restore'
  | 'record.seal'
  | 'secret.reseal'
  | 'job.cancel'
  | 'webhook.replay';

/** Changes that add something: these alone are refused when an audit log is full, so that no one can keep others from taking rights away. */
export const additions: readonly AuditAction[] = ['key.create', 'person.invite', 'passkey.add'];

/** Author of a change: a person at the dashboard, or a user of a machine at the command line. */
export interface Actor {
  readonly via: 'dashboard' | 'command';
  /** E-mail address of a person, or name of a user. */
  readonly who: string;
  /** Address of the person's browser, or name of the machine. */
  readonly from: string;
}

/** A change of the record, without its author. */
export interface NotedChange {
  readonly action: AuditAction;
  /** Subject within the account, or within the service: an alias, an e-mail address, the name of a plan; '' for the account itself. */
  readonly target: string;
  /** Fields that were given, by name; never a secret. */
  readonly change?: object;
}

export interface AuditEntry extends Actor, NotedChange {
  readonly entry: string;
  readonly at: number;
  /** Id of the account; '' for a change of the service. */
  readonly account: string;
  readonly change: Readonly<Record<string, unknown>>;
}

const maxValueLength = 200;

/** Returns the JSON that the record keeps of a change. Long texts are cut: the entry says what was changed, the record to what. */
export function writeNote(actor: Actor, account: string, { action, target, change = {} }: NotedChange): string {
  const cut = (_: string, value: unknown) =>
    typeof value === 'string' && value.length > maxValueLength ? `${value.slice(0, maxValueLength)}…` : value;
  return JSON.stringify({ ...actor, account, action, target, change }, cut);
}
