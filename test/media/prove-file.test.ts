import { expect } from 'chai';
import { tolerance } from '../../src/media/prove-file.ts';

describe('The tolerance of a length (D92)', () => {
  for (const [title, promised, seconds] of [
    ['two seconds of a short film', 10, 2],
    ['two seconds of forty', 40, 2],
    ['D92: a twentieth of a long film', 1000, 50],
  ] as const) {
    it(title, () => expect(tolerance(promised)).to.equal(seconds));
  }
});
