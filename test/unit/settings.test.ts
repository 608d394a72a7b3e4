import { availableParallelism } from 'node:os';
import { expect } from 'chai';
import type { Setting } from '../../src/base/settings/kinds.ts';
import { settings } from '../../src/base/settings/settings.ts';

const key = Buffer.alloc(32, 7).toString('base64');

/** Every name of the table of settings that scripts and charts depend on. */
const names = `
DATA HOST PORT DASHBOARD_PORT GATEWAY_PORT PROBE_PORT PUBLIC_URL DASHBOARD_URL SECRET SECRET_OLD REDIS_URL REDIS_MEMORY DURABILITY RUNNER
OBJECTS S3_BUCKET S3_ENDPOINT S3_PUBLIC_ENDPOINT S3_REGION S3_PATH_STYLE WORKERS SANDBOX CGROUP EGRESS_PORTS EGRESS_ALLOW EGRESS_DENY
DNS_SERVERS YTDLP_PLUGINS COOKIES ASYNC_STATUS KEY_QUOTA_STATUS TRUSTED_PROXIES AUTH_FAILURES AUTH_WINDOW AUTH_BLOCK
MAX_FILE_BYTES JOB_SECONDS INSPECT_SECONDS ATTEMPTS QUEUE_HOURS FILE_HOURS BACKUPS_SCHEDULED JOB_DAYS LOG_DAYS LOG_LINES WEBHOOK_SECONDS
WEBHOOK_GAP_SECONDS STRIPE_KEY STRIPE_URL STRIPE_WEBHOOK_SECRET SELLER_NAME SELLER_ADDRESS SELLER_TAX SMTP_URL MAIL_FROM OIDC_ISSUER OIDC_CLIENT_ID OIDC_CLIENT_SECRET API_URL API_KEY
GATEWAY_ADDRESS EGRESS_ADDRESS INSPECTOR_ADDRESS TERMINATION_FILE TLS_CERT_FILE TLS_KEY_FILE TLS_CA_FILE WORKER_CA_CONFIG_MAP WORKER_PLACEMENT KUBE_NAMESPACE KUBE_RATE WORKER_IMAGE
WORKER_ACCOUNT WORKER_CPU WORKER_MEMORY WORKER_AWAY_SECONDS WORKER_START_SECONDS WORKER_RUNTIME_CLASS WORKER_PRIORITY_CLASS
WORKER_QUEUE WORKER_HOST_USERS WORKER_CLUSTER_USER WORKER_NETWORK RESERVED_WORKERS PREEMPT_SECONDS CLOCK_FILE LOG_LEVEL LOG_FORMAT TRACES_URL`;

const four = (address: string, prefix: number) => ({ family: 'ipv4', address, prefix });
const six = (address: string, prefix: number) => ({ family: 'ipv6', address, prefix });

const accepted: [name: string, text: string, value: unknown][] = [
  ['TRAWL_HOST', '::1', '::1'],
  ['TRAWL_HOST', 'localhost', 'localhost'],
  ['TRAWL_PORT', '0', 0],
  ['TRAWL_PORT', '65535', 65535],
  ['TRAWL_DASHBOARD_PORT', 'none', null],
  ['TRAWL_PUBLIC_URL', 'https://media.example.com/base/', 'https://media.example.com/base'],
  ['TRAWL_DASHBOARD_URL', 'https://Dash.example.com:8443/', 'https://dash.example.com:8443'],
  ['TRAWL_SECRET', key, Buffer.alloc(32, 7)],
  ['TRAWL_REDIS_URL', 'redis://one:6379/2', 'redis://one:6379/2'],
  ['TRAWL_REDIS_URL', 'rediss://user:word@one', 'rediss://user:word@one'],
  ['TRAWL_REDIS_URL', 'redis://a:1,redis://b:2', 'redis://a:1,redis://b:2'],
  ['TRAWL_REDIS_URL', 'redis+sentinel://:word@a:1,b:2/main', 'redis+sentinel://:word@a:1,b:2/main'],
  ['TRAWL_REDIS_URL', 'redis+sentinel://u:p@ss@a:1/main/3', 'redis+sentinel://u:p@ss@a:1/main/3'],
  ['TRAWL_REDIS_MEMORY', '67108864', 67_108_864],
  ['TRAWL_S3_BUCKET', 'a.b-1.media', 'a.b-1.media'],
  ['TRAWL_S3_ENDPOINT', 'https://s3.example:9000/', 'https://s3.example:9000'],
  ['TRAWL_S3_REGION', 'eu-central-1', 'eu-central-1'],
  ['TRAWL_S3_PATH_STYLE', 'true', true],
  ['TRAWL_WORKERS', '6', 6],
  ['TRAWL_WORKERS', 'cores', availableParallelism()],
  ['TRAWL_RESERVED_WORKERS', '0', 0],
  ['TRAWL_EGRESS_PORTS', '80, 8443', [80, 8443]],
  ['TRAWL_EGRESS_ALLOW', '127.0.0.1:*', [{ ...four('127.0.0.1', 32), port: null }]],
  [
    'TRAWL_EGRESS_ALLOW',
    '10.0.0.0/8:443,[fd00::/8]:443,fd00::/8:*,[::1]:80',
    [
      { ...four('10.0.0.0', 8), port: 443 },
      { ...six('fd00::', 8), port: 443 },
      { ...six('fd00::', 8), port: null },
      { ...six('::1', 128), port: 80 },
    ],
  ],
  ['TRAWL_EGRESS_DENY', '203.0.113.0/24', [four('203.0.113.0', 24)]],
  ['TRAWL_TRUSTED_PROXIES', '127.0.0.1', [four('127.0.0.1', 32)]],
  ['TRAWL_TRUSTED_PROXIES', '10.0.0.0/8, fd00::/8', [four('10.0.0.0', 8), six('fd00::', 8)]],
  [
    'TRAWL_DNS_SERVERS',
    '10.0.0.10,resolver.example:5353,::1,[::1]:53',
    [
      { host: '10.0.0.10', port: null },
      { host: 'resolver.example', port: 5353 },
      { host: '::1', port: null },
      { host: '::1', port: 53 },
    ],
  ],
  ['TRAWL_YTDLP_PLUGINS', '/a:/b c', ['/a', '/b c']],
  ['TRAWL_ASYNC_STATUS', '200', 200],
  ['TRAWL_KEY_QUOTA_STATUS', '429', 429],
  ['TRAWL_JOB_SECONDS', '86400', 86_400],
  ['TRAWL_FILE_HOURS', '0.25', 0.25],
  ['TRAWL_LOG_DAYS', '0.5', 0.5],
  ['TRAWL_STRIPE_URL', 'http://127.0.0.1:4000', 'http://127.0.0.1:4000'],
  ['TRAWL_OIDC_CLIENT_ID', 'dashboard', 'dashboard'],
  ['TRAWL_KUBE_NAMESPACE', 'trawl-jobs', 'trawl-jobs'],
  ['TRAWL_LOG_LEVEL', 'debug', 'debug'],
  ['TRAWL_LOG_FORMAT', 'text', 'text'],
  ['TRAWL_TRACES_URL', 'http://collector:4318/v1/traces', 'http://collector:4318/v1/traces'],
];

const refused: [name: string, ...texts: string[]][] = [
  ['TRAWL_WORKER_PLACEMENT', 'x', '[]', 'null', '{"hostNetwork":true}', '{"tolerations":{}}'],
  ['TRAWL_HOST', '10.0.0.999', 'a b', 'http://x'],
  ['TRAWL_PORT', '65536', '-1', '80x', '8.5', ' '],
  [
    'TRAWL_PUBLIC_URL',
    'ftp://x',
    'media.example.com',
    'https://u:p@x',
    'https://x/?a=1',
    'https://x/#a',
    'https:x',
    'https://x//a',
    'https://x/.//a',
  ],
  ['TRAWL_DASHBOARD_URL', 'dash.example.com', 'https://example.com/trawl', 'https://example.com/?a=1'],
  ['TRAWL_SECRET', 'short', key.slice(1), `${key}${key}`, key.replace('=', ''), Buffer.alloc(31).toString('base64')],
  ['TRAWL_SECRET_OLD', 'short'],
  [
    'TRAWL_REDIS_URL',
    'http://x',
    'redis://',
    'redis://a,b',
    'redis+sentinel://a:1',
    'redis+sentinel:///a',
    'one:6379',
    'redis://a b',
    'redis://:50%off@a',
    'redis+sentinel://:50%off@a:1/main',
    // A password with a character that ends the host, before the real one.
    'redis://:p@ss/word@a:1',
    'redis://user:12#34@a:1',
    'redis://user:12?34@a:1',
    'redis://a:1/main',
    'redis+sentinel://a:1/main#1',
    'redis+sentinel://a:1/main/first',
  ],
  ['TRAWL_REDIS_MEMORY', '0', '67108863', '1Gi'],
  ['TRAWL_DURABILITY', 'always', 'Strict'],
  ['TRAWL_RUNNER', 'docker'],
  ['TRAWL_OBJECTS', 'gcs'],
  ['TRAWL_S3_PATH_STYLE', 'perhaps'],
  [
    'TRAWL_S3_BUCKET',
    'ab',
    'a'.repeat(64),
    'Media',
    '-a',
    'a-',
    '.media',
    'a..b',
    'a.-b',
    '10.0.0.1',
    'a/b',
    's3://media',
  ],
  [
    'TRAWL_S3_ENDPOINT',
    'minio:9000',
    'http://minio/a b',
    ' http://minio',
    'http://minio\n',
    'http://minio/media',
    'http://u:p@a',
  ],
  ['TRAWL_S3_PUBLIC_ENDPOINT', 'files.example.com', 'https://files.example.com/?a', 'https://files.example.com/media'],
  ['TRAWL_S3_REGION', 'eu central', 'EU', '-'],
  ['TRAWL_WORKERS', 'many', '0', '-1', '1.5', '1e3', '99999999999999999'],
  ['TRAWL_RESERVED_WORKERS', 'none', '-1', '0.5'],
  ['TRAWL_PREEMPT_SECONDS', '0', 'never'],
  ['TRAWL_SANDBOX', 'on'],
  ['TRAWL_EGRESS_PORTS', '0', '80,', '65536', 'http'],
  ['TRAWL_EGRESS_ALLOW', 'x', '10.0.0.0/8', '10.0.0.0/33:80', '10.0.0.1:0', '10.0.0.1:', 'localhost:*'],
  ['TRAWL_EGRESS_ALLOW', 'fd00::1:443', '[fd00::/129]:443', '[10.0.0.1]:443', '[fd00::/8:443', '*:*', '10.0.0.1:*,x'],
  ['TRAWL_EGRESS_DENY', 'example.com', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0/8', '/8'],
  ['TRAWL_TRUSTED_PROXIES', '10.0.0.0/99', 'fd00::/129', 'fe80::1%eth0', '10.0.0.0/-1', '10.0.0.0/0x8', 'any'],
  ['TRAWL_DNS_SERVERS', 'one:0', '[::1', '[1.1.1.1]:53', 'udp://one', 'one:53:53'],
  ['TRAWL_YTDLP_PLUGINS', '/a::/b'],
  ['TRAWL_ASYNC_STATUS', '201'],
  ['TRAWL_KEY_QUOTA_STATUS', '403'],
  ['TRAWL_JOB_SECONDS', '0', '1.5', '1000001'],
  ['TRAWL_QUEUE_HOURS', '0', '-1', 'a day', '1e3', '100001'],
  ['TRAWL_SMTP_URL', 'http://mail', 'mail:25'],
  ['TRAWL_MAIL_FROM', 'nobody', 'a@b\nBcc: c@d'],
  ['TRAWL_KUBE_NAMESPACE', 'Trawl', 'a/b'],
  ['TRAWL_LOG_LEVEL', 'loud', 'INFO'],
  ['TRAWL_LOG_FORMAT', 'xml', 'JSON'],
  ['TRAWL_TRACES_URL', 'collector:4318', 'grpc://collector:4317', 'http://user:secret@collector:4318'],
];

function readValue(name: string, text: string): unknown {
  const setting = settings.find((setting) => setting.name === name);
  if (!setting) throw new Error(`no setting ${name}`);
  return setting.kind.read(text);
}

describe('the list of settings', () => {
  it('holds every name, each once', () => {
    const wanted = names
      .trim()
      .split(/\s+/)
      .map((name) => `TRAWL_${name}`);
    expect(settings.map((setting) => setting.name)).to.have.members(wanted);
  });

  it('has defaults that are allowed', () => {
    const wrong = settings.filter(
      ({ kind, default: text }: Setting) => text !== undefined && kind.read(text) === undefined,
    );
    expect(wrong).to.deep.equal([]);
  });

  for (const { name, text, kind, absent = 'x' } of settings as readonly Setting[]) {
    it(`explains ${name} in plain sentences`, () => {
      expect(text).to.match(/^[A-Z0-9`].+\.$/);
      expect(`${kind.allowed} ${absent}`).to.match(/[^.]$/);
    });
  }
});

describe('values of settings', () => {
  for (const [name, text, value] of accepted) {
    it(`${name}=${text} is read, and has the form that the chart asks for`, () => {
      expect(readValue(name, text)).to.deep.equal(value);
      const { form = /^/ } = settings.find((setting) => setting.name === name)!.kind as Setting['kind'];
      expect(text).to.match(form);
    });
  }
  for (const [name, ...texts] of refused) {
    for (const text of texts) {
      it(`${name}=${JSON.stringify(text)} is refused`, () => expect(readValue(name, text)).to.equal(undefined));
    }
  }
});
