/**
 * Returns true when an account that uses `used` slots may take one more while `free` slots are left. The threshold is dynamic
 * (Choudhury and Hahne, 1998): an account alone gets half of the slots, each further one half of the rest, and an account
 * that uses none gets any free slot.
 */
export function mayTakeSlot(used: number, free: number): boolean {
  return used < free;
}
