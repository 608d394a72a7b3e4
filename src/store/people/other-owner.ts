/** Limits of taking a role. */
export interface RoleLoss {
  /** Refuses to take the role of the account's last owner. */
  readonly keepsOwner?: boolean;
  /** Hash of the session in which the role is taken. */
  readonly keptSession?: string;
}

export const lastOwner = 'An account keeps at least one owner: make somebody else an owner first';

/**
 * Returns Lua for a script with these named keys. loses_owner(person, field, keeps_owner): true if taking the role of this person would leave
 * their account without an owner. Among the keys behind the named ones are those of people who were owners before: one of them must still be
 * one, because two owners may remove each other at the same moment.
 */
export function losesOwner(keyNames: readonly string[]): string {
  return /* lua */ `
local function loses_owner(person, field, keeps_owner)
  if keeps_owner ~= '1' or redis.call('HGET', person, field) ~= 'owner' then return false end
  for n = ${keyNames.length + 1}, #KEYS do
    if redis.call('HGET', KEYS[n], field) == 'owner' then return false end
  end
  return true
end
`;
}
