import { expect } from 'chai';
import { processesOf } from '../support/worker.ts';
import { film, startHostilePool } from './hostile-pool.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

/** More than an inspection may write. */
const flood = `
import os
report('writes')
for n in range(20 << 10): os.write(1, b'x' * 1023 + b'\\n')
`;

/** Failures of classes that every object of JavaScript has as a member. */
const members = `
import json, os
report('writes')
for name in ['constructor', '__proto__', 'toString']: os.write(1, json.dumps({'failed': {'class': [name]}}).encode() + b'\\n')
`;

describe('Output without end of a taken-over inspection', () => {
  let source: HostileSource;
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());

  it('ends that inspection and not the inspector, with which all others would end', async () => {
    const pool = await startHostilePool(source, 'none');
    try {
      expect(await pool.inspect(source.lay(film))).to.have.property('metadata');
      const usual = processesOf(pool.folder);
      expect(await pool.inspect(source.lay(flood)).catch(String)).to.not.have.property('metadata');
      expect(source.reports).to.deep.equal(['writes']);
      expect(processesOf(pool.folder)).to.deep.equal(usual);
      expect(await pool.inspect(source.lay(film))).to.have.property('metadata');
    } finally {
      await pool.close();
    }
  });

  it('names a failure by a class that no failure has, and ends that inspection alone', async () => {
    const pool = await startHostilePool(source, 'none');
    try {
      expect(await pool.inspect(source.lay(members))).to.have.nested.property('failure.code', 'extractor_failed');
      expect(source.reports).to.deep.equal(['writes']);
      expect(await pool.inspect(source.lay(film))).to.have.property('metadata');
    } finally {
      await pool.close();
    }
  });
});
