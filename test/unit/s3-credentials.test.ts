import { expect } from 'chai';
import { followCredentialsFile } from '../../src/objects/s3-credentials.ts';
import { until } from '../support/until.ts';

describe('keys of S3 in a file', () => {
  it('are read again, and stay while the file cannot be read', async () => {
    let [key, reads, isAway] = ['FIRST', 0, false];
    const credentials = followCredentialsFile(async () => {
      reads++;
      if (isAway) throw new Error('away');
      return { accessKeyId: key, secretAccessKey: 'secret' };
    }, 5);
    const present = async () => (await credentials({})).accessKeyId;
    expect(await present()).to.equal('FIRST');
    key = 'SECOND';
    await until(async () => (await present()) === 'SECOND', 5, 'the new key');
    isAway = true;
    const before = reads;
    await until(async () => (await present()) === 'SECOND' && reads > before + 1, 5, 'the file was looked for');
    isAway = false;
    key = 'THIRD';
    await until(async () => (await present()) === 'THIRD', 5, 'the file is back');
  });

  it('are refused where there never was a file', async () => {
    const missing = followCredentialsFile(async () => Promise.reject(new Error('away')));
    expect(String(await missing({}).catch((error: Error) => error))).to.include('away');
  });
});
