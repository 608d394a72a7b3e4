import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { root } from '../support/tree.ts';
import { listMutated } from './scope.ts';

describe('mutants of the rules', function () {
  this.timeout(0);

  it('at least 80 % of the mutants of model, egress and the pure parts of the API are killed by unit tests', () => {
    const args = ['run', 'test/mutation/stryker.json', '--mutate', listMutated().join()];
    // Its report lists the survivors; below the threshold of stryker.json it fails.
    const { status } = spawnSync('stryker', args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
    expect(status).to.equal(0);
  });
});
