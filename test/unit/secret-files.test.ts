import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import { followSecretFiles } from '../../src/base/secret-files.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('secrets in files, while a role runs', () => {
  const { folder, remove } = aFolder();
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    // Written whole, as the documents say: the file is read meanwhile.
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
    return path;
  };
  const follow = (env: Record<string, string>) => {
    const { log, lines } = aLog();
    const read = () => readConfig(env);
    return { ...followSecretFiles(read(), { env, log, rereadMs: 2 }), lines };
  };
  after(remove);

  it('have the value that their file holds now, and no line of the log shows it', async () => {
    const { config, close, lines } = follow({ TRAWL_STRIPE_KEY_FILE: file('key', 'sk_test_first') });
    expect(config.stripeKey).to.equal('sk_test_first');
    file('key', 'sk_test_second\n');
    await until(() => config.stripeKey === 'sk_test_second', 5, 'the new value');
    expect(lines.join()).to.include('TRAWL_STRIPE_KEY').and.not.to.include('second');
    expect(() => Object.assign(config, { stripeKey: 'other' })).to.throw(TypeError);
    close();
  });

  it('keep their value while the file is away, empty or wrong, and say so once', async () => {
    const { config, close, lines } = follow({
      TRAWL_SMTP_URL_FILE: file('url', 'smtp://first'),
      TRAWL_MAIL_FROM: 'a@b.c',
    });
    file('url', '');
    await until(() => lines.length === 1, 5, 'a warning of an empty file');
    rmSync(join(folder, 'url'));
    await until(() => lines.length === 2, 5, 'a warning of a file that is away');
    file('url', 'http://wrong');
    await until(() => lines.length === 3, 5, 'a warning of a wrong value');
    expect(config.smtpUrl).to.equal('smtp://first');
    expect(lines[2]).to.include('TRAWL_SMTP_URL must be').and.not.to.include('http://wrong');
    file('url', 'smtp://host');
    await until(() => config.smtpUrl === 'smtp://host', 5, 'the right value');
    close();
  });

  it('have a new value while the file of another one is empty', async () => {
    const { config, close, lines } = follow({
      TRAWL_SMTP_URL_FILE: file('url', 'smtp://first'),
      TRAWL_MAIL_FROM: 'a@b.c',
      TRAWL_STRIPE_KEY_FILE: file('key', 'sk_test_first'),
    });
    file('url', '');
    await until(() => lines.length === 1, 5, 'a warning of an empty file');
    file('key', 'sk_test_second');
    await until(() => config.stripeKey === 'sk_test_second', 5, 'the new value of the other one');
    expect(config.smtpUrl).to.equal('smtp://first');
    close();
  });

  it('are not looked at after the end', async () => {
    const { config, close } = follow({ TRAWL_STRIPE_KEY_FILE: file('key', 'sk_test_first') });
    const other = follow({ TRAWL_STRIPE_KEY_FILE: join(folder, 'key') });
    close();
    file('key', 'sk_test_second');
    await until(() => other.config.stripeKey === 'sk_test_second', 5, 'another one has seen it');
    expect(config.stripeKey).to.equal('sk_test_first');
    other.close();
  });

  it('leave settings alone that come from the environment', () => {
    const config = readConfig({ TRAWL_STRIPE_KEY: 'sk_test_first' });
    const { log } = aLog();
    expect(followSecretFiles(config, { env: { TRAWL_STRIPE_KEY: 'sk_test_first' }, log }).config).to.equal(config);
  });
});
