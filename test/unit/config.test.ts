import { availableParallelism } from 'node:os';
import { expect } from 'chai';
import { type Config, ConfigError, configTable, readConfig } from '../../src/base/config.ts';
import { callerSettings } from '../../src/base/settings/caller-settings.ts';
import type { Setting } from '../../src/base/settings/kinds.ts';
import { type SettingName, settings } from '../../src/base/settings/settings.ts';
import { needsOwnPorts } from '../../src/roles/serve-api.ts';

const key = Buffer.alloc(32, 7).toString('base64');
/** Names that are no settings, made here because no file of the tree may spell one. */
const [unknown, noSecret] = ['NONSENSE', 'WORKERS_FILE'].map((name) => `TRAWL_${name}`) as [string, string];
const noFile = (): string => {
  throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
};

function read(env: Record<string, string>): Config {
  return readConfig(env, {}, noFile);
}

function problemsOf(
  env: Record<string, string>,
  readFile: (path: string) => string = noFile,
  required: SettingName[] = [],
): readonly string[] {
  try {
    readConfig(env, { required }, readFile);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

/** The defaults. */
const defaults: Partial<Config> = {
  data: './data',
  host: '127.0.0.1',
  port: 8080,
  dashboardPort: 8081,
  gatewayPort: 8082,
  probePort: 9090,
  publicUrl: 'http://127.0.0.1:8080',
  dashboardUrl: 'http://127.0.0.1:8081',
  secret: null,
  redisUrl: null,
  durability: 'strict',
  runner: 'process',
  objects: 'folder',
  s3PathStyle: false,
  workers: availableParallelism(),
  sandbox: 'auto',
  egressPorts: [80, 443],
  egressAllow: [],
  egressDeny: [],
  dnsServers: [],
  ytdlpPlugins: [],
  cookies: null,
  asyncStatus: 202,
  keyQuotaStatus: 401,
  trustedProxies: [],
  authFailures: 20,
  authWindow: 600,
  authBlock: 900,
  maxFileBytes: 10_737_418_240,
  jobSeconds: 7200,
  inspectSeconds: 50,
  attempts: 3,
  queueHours: 24,
  fileHours: 24,
  jobDays: 30,
  logDays: 90,
  logLines: 10_000,
  webhookSeconds: 10,
  webhookGapSeconds: 5,
  clockFile: null,
  tlsCertFile: null,
  tlsKeyFile: null,
  tlsCaFile: null,
  logLevel: 'info',
};

const s3 = { TRAWL_OBJECTS: 's3', TRAWL_S3_BUCKET: 'files' };
const jobs = {
  TRAWL_RUNNER: 'kubernetes',
  TRAWL_KUBE_NAMESPACE: 'workers',
  TRAWL_WORKER_IMAGE: 'registry.example/worker',
  TRAWL_GATEWAY_ADDRESS: 'http://gateway:8082',
  TRAWL_EGRESS_ADDRESS: 'http://egress:3128',
};
const inCluster = { ...s3, ...jobs };
const fit: [string, Record<string, string>][] = [
  ['s3 with a bucket', s3],
  ['kubernetes with s3 and all that its Jobs need', inCluster],
  [
    'a gateway with TLS and its certificate',
    {
      ...inCluster,
      TRAWL_GATEWAY_ADDRESS: 'https://gateway:8082',
      TRAWL_TLS_CERT_FILE: '/tls.crt',
      TRAWL_TLS_KEY_FILE: '/tls.key',
    },
  ],
  ['a clock file on one machine', { TRAWL_CLOCK_FILE: '/clock' }],
  ['a clock file on another loopback address', { TRAWL_CLOCK_FILE: '/clock', TRAWL_HOST: '127.3.2.1' }],
  ['a clock file on the loopback address of IPv6', { TRAWL_CLOCK_FILE: '/clock', TRAWL_HOST: '::1' }],
  ['a clock file on localhost', { TRAWL_CLOCK_FILE: '/clock', TRAWL_HOST: 'localhost' }],
  ['mail with a sender', { TRAWL_SMTP_URL: 'smtp://mail:25', TRAWL_MAIL_FROM: 'Trawl <a@b.example>' }],
  ['names of other programs', { NODE_OPTIONS: 'x', TRAWLER: 'x', trawl_port: 'x' }],
];

const contradictions: [string, string, Record<string, string>][] = [
  ['s3 without a bucket', 'TRAWL_S3_BUCKET', { TRAWL_OBJECTS: 's3' }],
  ['a bucket without s3', 'TRAWL_OBJECTS=s3', { TRAWL_S3_BUCKET: 'files' }],
  ['kubernetes with a folder', 'TRAWL_OBJECTS', jobs],
  ['kubernetes without a namespace', 'TRAWL_KUBE_NAMESPACE', { ...inCluster, TRAWL_KUBE_NAMESPACE: '' }],
  ['kubernetes without an image', 'TRAWL_WORKER_IMAGE', { ...inCluster, TRAWL_WORKER_IMAGE: '' }],
  ['kubernetes without a gateway', 'TRAWL_GATEWAY_ADDRESS', { ...inCluster, TRAWL_GATEWAY_ADDRESS: '' }],
  ['kubernetes without an egress proxy', 'TRAWL_EGRESS_ADDRESS', { ...inCluster, TRAWL_EGRESS_ADDRESS: '' }],
  ['a gateway at a socket for pods', 'TRAWL_GATEWAY_ADDRESS', { ...inCluster, TRAWL_GATEWAY_ADDRESS: 'unix:/g' }],
  ['an egress proxy at a socket for pods', 'TRAWL_EGRESS_ADDRESS', { ...inCluster, TRAWL_EGRESS_ADDRESS: 'unix:/e' }],
  ['a certificate without its key', 'TRAWL_TLS_KEY_FILE', { TRAWL_TLS_CERT_FILE: '/tls.crt' }],
  [
    'a gateway with TLS but no certificate',
    'TRAWL_TLS_CERT_FILE',
    { ...inCluster, TRAWL_GATEWAY_ADDRESS: 'https://gateway:8082' },
  ],
  [
    'a gateway with a certificate that workers would not see',
    'TRAWL_GATEWAY_ADDRESS',
    { ...inCluster, TRAWL_TLS_CERT_FILE: '/tls.crt', TRAWL_TLS_KEY_FILE: '/tls.key' },
  ],
  ['a clock file on an open host', 'TRAWL_CLOCK_FILE', { TRAWL_CLOCK_FILE: '/c', TRAWL_HOST: '0.0.0.0' }],
  ['a clock file on an open IPv6 host', 'TRAWL_CLOCK_FILE', { TRAWL_CLOCK_FILE: '/c', TRAWL_HOST: '::' }],
  ['a clock file on a named host', 'TRAWL_CLOCK_FILE', { TRAWL_CLOCK_FILE: '/c', TRAWL_HOST: 'example.com' }],
  ['a clock file in a cluster', 'TRAWL_CLOCK_FILE', { ...inCluster, TRAWL_CLOCK_FILE: '/c' }],
  ['as many kept workers as there are', 'TRAWL_WORKERS', { TRAWL_WORKERS: '3', TRAWL_RESERVED_WORKERS: '3' }],
  ['a dashboard elsewhere without its URL', 'TRAWL_DASHBOARD_URL', { TRAWL_DASHBOARD_PORT: 'none' }],
  ['mail without a sender', 'TRAWL_MAIL_FROM', { TRAWL_SMTP_URL: 'smtp://mail' }],
  ['an issuer without a client', 'TRAWL_OIDC_CLIENT_ID', { TRAWL_OIDC_ISSUER: 'https://id.example' }],
  ['a secret given twice', 'TRAWL_SECRET_FILE are both set', { TRAWL_SECRET: key, TRAWL_SECRET_FILE: '/s' }],
  ['an unknown name', unknown, { [unknown]: '' }],
  ['a file for what is no secret', noSecret, { [noSecret]: '/w' }],
];

describe('settings', () => {
  it('have their defaults when nothing is set', () => {
    expect(read({})).to.deep.include(defaults);
  });

  it('give one field each but for those of callers, null where there is no value', () => {
    const config = read({});
    expect(Object.keys(config)).to.have.length(settings.length - Object.keys(callerSettings).length);
    expect(Object.values(config)).not.to.include(undefined);
  });

  it('trust the authorities of TRAWL_TLS_CA_FILE at every https:// address of ours', () => {
    const env = {
      TRAWL_TLS_CA_FILE: '/ca.crt',
      TRAWL_EGRESS_ADDRESS: 'https://e:1',
      TRAWL_INSPECTOR_ADDRESS: 'http://i:2',
    };
    const { egressAddress, inspectorAddress, gatewayAddress } = read(env);
    expect({ egressAddress, inspectorAddress, gatewayAddress }).to.deep.equal({
      egressAddress: { host: 'e', port: 1, tls: { caFile: '/ca.crt' } },
      inspectorAddress: { host: 'i', port: 2 },
      gatewayAddress: null,
    });
  });

  it('are frozen, with their lists', () => {
    const config = read({ TRAWL_EGRESS_PORTS: '80' });
    expect(Object.isFrozen(config) && Object.isFrozen(config.egressPorts)).to.equal(true);
  });

  for (const [title, env] of fit) {
    it(`accept ${title}`, () => expect(problemsOf(env)).to.deep.equal([]));
  }
  for (const [title, name, env] of contradictions) {
    it(`refuse ${title} in one sentence`, () => {
      expect(problemsOf(env)).to.have.length(1);
      expect(problemsOf(env)[0]).to.contain(name).and.match(/\.$/);
    });
  }

  it('are refused with all problems at once, a line each', () => {
    const env = { [unknown]: '1', TRAWL_WORKERS: 'many', TRAWL_ASYNC_STATUS: '201', TRAWL_OBJECTS: 's3' };
    const problems = problemsOf(env);
    for (const name of [unknown, 'TRAWL_WORKERS', 'TRAWL_ASYNC_STATUS', 'TRAWL_S3_BUCKET']) {
      expect(problems.filter((problem) => problem.includes(name))).to.have.length(1);
    }
    expect(() => read(env)).to.throw(ConfigError, problems.join('\n'));
  });

  it('settings name the ports that one process cannot open twice; the start blamed another program for them', () => {
    const rulesOf = (env: Record<string, string>) => () => readConfig(env, { rules: [needsOwnPorts] });
    for (const name of ['TRAWL_DASHBOARD_PORT', 'TRAWL_PROBE_PORT']) {
      expect(rulesOf({ TRAWL_PORT: '7000', [name]: '7000' })).to.throw(ConfigError, needsOwnPorts.sentence);
    }
    expect(rulesOf({ TRAWL_PORT: '0', TRAWL_DASHBOARD_PORT: '0', TRAWL_PROBE_PORT: '0' })).not.to.throw();
  });

  it('settings that are wrong are refused with a sentence that names the allowed values', () => {
    const env = { TRAWL_TRUSTED_PROXIES: '10.0.0.0/99', TRAWL_LOG_LEVEL: 'loud' };
    expect(problemsOf(env)).to.deep.equal([
      'TRAWL_LOG_LEVEL must be error, warn, info or debug.',
      'TRAWL_TRUSTED_PROXIES must be IP addresses or CIDRs such as 10.0.0.0/8, several with commas between.',
    ]);
  });

  it('never show the value of a wrong setting', () => {
    expect(problemsOf({ TRAWL_SECRET: 'canary', TRAWL_REDIS_URL: 'canary' }).join()).not.to.contain('canary');
  });

  it('are refused while one that the role requires is missing', () => {
    expect(problemsOf({}, noFile, ['TRAWL_SECRET', 'TRAWL_PORT'])).to.deep.equal(['TRAWL_SECRET is required here.']);
    expect(problemsOf({ TRAWL_SECRET: key }, noFile, ['TRAWL_SECRET'])).to.deep.equal([]);
  });

  it('are refused by a rule of a role, and a wrong value by itself alone', () => {
    const rules = [{ broken: ({ port }: Partial<Config>) => port === 8080, sentence: 'Another port.' }];
    expect(() => readConfig({}, { rules }, noFile)).to.throw(ConfigError, /^Another port\.$/);
    expect(readConfig({ TRAWL_PORT: '1' }, { rules }, noFile).port).to.equal(1);
    // The value is wrong by itself.
    expect(() => readConfig({ TRAWL_PORT: 'x' }, { rules }, noFile)).to.throw(
      ConfigError,
      /^TRAWL_PORT must be [^\n]*$/,
    );
  });

  it('settings that are empty count as not set', () => {
    expect(read({ TRAWL_PORT: '', TRAWL_SECRET: '', TRAWL_SECRET_FILE: '' })).to.deep.include(defaults);
  });

  it('derive links from an IPv6 host with brackets', () => {
    expect(read({ TRAWL_HOST: '::1', TRAWL_DASHBOARD_PORT: '99' }).dashboardUrl).to.equal('http://[::1]:99');
  });
});

describe('secrets from files', () => {
  const secrets: [SettingName, keyof Config, string, unknown][] = [
    ['TRAWL_SECRET', 'secret', key, Buffer.alloc(32, 7)],
    ['TRAWL_SECRET_OLD', 'secretOld', `${key},${key}`, [Buffer.alloc(32, 7), Buffer.alloc(32, 7)]],
    ['TRAWL_REDIS_URL', 'redisUrl', 'redis://one', 'redis://one'],
    ['TRAWL_STRIPE_KEY', 'stripeKey', 'sk_test', 'sk_test'],
    ['TRAWL_STRIPE_WEBHOOK_SECRET', 'stripeWebhookSecret', 'whsec_x', 'whsec_x'],
    ['TRAWL_SMTP_URL', 'smtpUrl', 'smtp://mail', 'smtp://mail'],
    ['TRAWL_OIDC_CLIENT_SECRET', 'oidcClientSecret', 'word', 'word'],
  ];
  for (const [name, field, text, value] of secrets) {
    it(`give ${name} without the line end of the file`, () => {
      const env = { [`${name}_FILE`]: '/run/it', TRAWL_MAIL_FROM: 'a@b.example' };
      const config = readConfig(env, {}, (path) => (path === '/run/it' ? `${text}\n` : ''));
      expect(config[field]).to.deep.equal(value);
    });
  }

  it('exist for every setting that is marked secret', () => {
    const marked = settings.filter((setting: Setting) => setting.secret).map((setting) => setting.name);
    expect(marked).to.have.members([...secrets.map(([name]) => name), 'TRAWL_API_KEY']);
  });

  const wrong: [string, () => string, string][] = [
    ['a file that is missing', noFile, 'TRAWL_SECRET_FILE names a file that cannot be read (ENOENT).'],
    ['an empty file', () => ' \n', 'TRAWL_SECRET_FILE names an empty file.'],
    ['a wrong value', () => 'short', 'TRAWL_SECRET must be 32 bytes in base64.'],
  ];
  for (const [title, readFile, sentence] of wrong) {
    it(`refuse ${title}`, () => expect(problemsOf({ TRAWL_SECRET_FILE: '/s' }, readFile)).to.deep.equal([sentence]));
  }
});

describe('the table of settings', () => {
  const lines = configTable().trim().split('\n');

  it('has one line for each, with its default', () => {
    expect(lines).to.have.length(settings.length + 2);
    expect(lines.find((line) => line.startsWith('| `TRAWL_PORT` |'))).to.contain('| `8080` |');
    expect(lines.find((line) => line.startsWith('| `TRAWL_PUBLIC_URL` |'))).to.contain(
      '| from host and port in `trawl up`, else required |',
    );
  });

  it('marks secrets and nothing else', () => {
    const marked = settings.filter((setting: Setting) => setting.secret);
    expect(lines.filter((line) => line.includes('**Secret**'))).to.have.length(marked.length);
    expect(lines.find((line) => line.includes('TRAWL_REDIS_URL`'))).to.contain('`TRAWL_REDIS_URL_FILE`');
  });
});
