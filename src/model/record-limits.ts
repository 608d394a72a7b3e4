/** Most entries of what would only grow, so that neither a stranger nor one account fills the record (docs/operate.md). */
export const recordLimits = {
  /** Addresses whose failed authentications are counted; the one whose last failure is oldest is forgotten first. */
  failingAddresses: 100_000,
  /** Blocked addresses; the block that would end first ends at once. */
  blockedAddresses: 10_000,
  plans: 1_000,
  offers: 100,
  peopleOfAccount: 100,
  /** Entries of an audit log that Redis has, those of two days: then the people of the account add nothing more. */
  auditEntriesOfAccount: 5_000,
  keysOfAccount: 1_000,
  packsOfAccount: 1_000,
  /** Ids that the operator gave to grants of credits to one account. */
  grantIdsOfAccount: 10_000,
  /** Invitations that an account mails in 15 minutes; others are for its owners to send. */
  mailedInvitationsOfAccount: 100,
  operators: 100,
  /** Sessions, and unused sign-in links, of a person; the one that would end first goes. */
  sessionsOfPerson: 20,
  /** Passkeys of a person; those that open one account alone count apart. */
  passkeysOfPerson: 10,
  /** Keys of an account that may each have TRAWL_LOG_LINES free lines; those of an account with more share the sum. */
  fullLogsOfAccount: 10,
} as const;
