import { expect } from 'chai';

/** Compares the names that stand in one place with those that must stand there; the message says which to add and which to remove. */
export function expectNames(place: string, told: readonly string[], wanted: readonly string[]): void {
  const add = [...new Set(wanted)].filter((name) => !told.includes(name)).sort();
  const remove = [...new Set(told)].filter((name) => !wanted.includes(name)).sort();
  expect({ add, remove }, `names to add and to remove in ${place}`).to.deep.equal({ add: [], remove: [] });
}
