import { availableParallelism } from 'node:os';
import { levels } from '../log.ts';
import * as kind from './kinds.ts';
import { kubeSettings } from './worker-jobs.ts';

/** One setting, an environment variable. It is read as its default when it is not set or empty. */
export interface Setting {
  readonly name: `TRAWL_${string}`;
  readonly kind: kind.Kind<unknown>;
  /** As one would write it; `null` when there is no value without the setting. */
  readonly default: string | null;
  /** What holds without the setting, in words, where the default does not say it. */
  readonly absent?: string;
  /** It may come from the file that NAME_FILE names, and is never shown. */
  readonly secret?: true;
  readonly text: string;
}

const cores = kind.orWord('cores', availableParallelism, kind.count);

/** Every setting there is; nothing else reads the environment. */
export const settings = [
  {
    name: 'TRAWL_DATA',
    kind: kind.text,
    default: './data',
    text: 'Data folder of `trawl up`; worker and inspector work in it.',
  },
  { name: 'TRAWL_HOST', kind: kind.host, default: '127.0.0.1', text: 'Address that every port is opened on.' },
  { name: 'TRAWL_PORT', kind: kind.port, default: '8080', text: 'Port of the public API.' },
  { name: 'TRAWL_DASHBOARD_PORT', kind: kind.port, default: '8081', text: 'Port of the dashboard.' },
  {
    name: 'TRAWL_GATEWAY_PORT',
    kind: kind.port,
    default: '8082',
    text: "Port of the workers' gateway; on one machine a socket takes its place.",
  },
  {
    name: 'TRAWL_PROBE_PORT',
    kind: kind.port,
    default: '9090',
    text: 'Port of `/healthz`, `/readyz` and `/metrics`, in every role.',
  },
  {
    name: 'TRAWL_PUBLIC_URL',
    kind: kind.linkStart,
    default: null,
    absent: 'from host and port in `trawl up`, else required',
    text: 'What links to the API and to results start with.',
  },
  {
    name: 'TRAWL_DASHBOARD_URL',
    kind: kind.linkStart,
    default: null,
    absent: 'from host and port',
    text: 'What links to the dashboard start with.',
  },
  {
    name: 'TRAWL_SECRET',
    kind: kind.secretKey,
    default: null,
    absent: 'made once in the data folder by `trawl up`, else required',
    secret: true,
    text: 'Seals tokens, links and webhook authorizations.',
  },
  {
    name: 'TRAWL_SECRET_OLD',
    kind: kind.secretKey,
    default: null,
    secret: true,
    text: 'The secret before this one: what it sealed still opens.',
  },
  {
    name: 'TRAWL_REDIS_URL',
    kind: kind.redisUrl,
    default: null,
    absent: 'a redis-server of its own in `trawl up`, else required',
    secret: true,
    text: 'The Redis that keeps the record.',
  },
  {
    name: 'TRAWL_DURABILITY',
    kind: kind.oneOf('strict', 'relaxed'),
    default: 'strict',
    text: '`strict` stops the start unless Redis writes every change to disk before it answers; `relaxed` only warns.',
  },
  {
    name: 'TRAWL_RUNNER',
    kind: kind.oneOf('process', 'kubernetes'),
    default: 'process',
    text: 'Where workers run: as processes of this machine or as Jobs of a cluster.',
  },
  {
    name: 'TRAWL_OBJECTS',
    kind: kind.oneOf('folder', 's3'),
    default: 'folder',
    text: 'Where finished files and ended days of the record are kept; credentials for S3 are found by its SDK.',
  },
  {
    name: 'TRAWL_S3_BUCKET',
    kind: kind.bucket,
    default: null,
    text: 'Bucket of finished files and ended days of the record, and of nothing else; required for `s3`. docs/s3.md says what it needs.',
  },
  {
    name: 'TRAWL_S3_ENDPOINT',
    kind: kind.serverUrl,
    default: null,
    absent: 'that of AWS',
    text: 'The S3 service as controller and workers reach it; workers go through `egress` when its address is public.',
  },
  {
    name: 'TRAWL_S3_PUBLIC_ENDPOINT',
    kind: kind.serverUrl,
    default: null,
    absent: 'the same endpoint',
    text: 'The S3 service as callers reach it.',
  },
  {
    name: 'TRAWL_S3_REGION',
    kind: kind.region,
    default: null,
    absent: 'found by the SDK, or `us-east-1` with an endpoint',
    text: 'Region of the bucket.',
  },
  {
    name: 'TRAWL_S3_PATH_STYLE',
    kind: kind.flag,
    default: 'false',
    text: 'Whether the bucket stands in the path instead of the host name.',
  },
  {
    name: 'TRAWL_WORKERS',
    kind: cores,
    default: 'cores',
    text: 'Workers at once: processes here, live Jobs in a cluster. `cores` is the number of processors.',
  },
  {
    name: 'TRAWL_SANDBOX',
    kind: kind.oneOf('auto', 'required', 'off'),
    default: 'auto',
    text: 'Bubblewrap around workers on one machine; `auto` uses it when it works and warns when it does not.',
  },
  { name: 'TRAWL_EGRESS_PORTS', kind: kind.ports, default: '80,443', text: 'Ports that callers may name.' },
  {
    name: 'TRAWL_EGRESS_ALLOW',
    kind: kind.exceptions,
    default: '',
    text: "Addresses that callers may name although they are not public, such as sources of one's own.",
  },
  {
    name: 'TRAWL_EGRESS_DENY',
    kind: kind.networks,
    default: '',
    text: 'More addresses never to be reached, such as public ones of the cluster itself.',
  },
  {
    name: 'TRAWL_DNS_SERVERS',
    kind: kind.peers,
    default: '',
    absent: "the system's",
    text: 'Resolvers that `egress` asks.',
  },
  {
    name: 'TRAWL_YTDLP_PLUGINS',
    kind: kind.folders,
    default: '',
    text: "Folders of the operator's own yt-dlp plugins, laid out as for `--plugin-dirs`; workers may only read them. In a cluster they are folders of the images.",
  },
  {
    name: 'TRAWL_COOKIES',
    kind: kind.text,
    default: null,
    text: 'Folder of cookie files, one per site, such as `example.com.txt`, of at most 256 KiB. The controller reads it and hands a worker those of its site alone.',
  },
  {
    name: 'TRAWL_ASYNC_STATUS',
    kind: kind.oneOf(202, 200),
    default: '202',
    text: 'Status of the answer that accepts an asynchronous call.',
  },
  {
    name: 'TRAWL_KEY_QUOTA_STATUS',
    kind: kind.oneOf(401, 429),
    default: '401',
    text: 'Status of the answer when the quota of a key is used up.',
  },
  {
    name: 'TRAWL_TRUSTED_PROXIES',
    kind: kind.networks,
    default: '',
    text: 'Proxies whose `X-Forwarded-For` is believed.',
  },
  {
    name: 'TRAWL_AUTH_FAILURES',
    kind: kind.count,
    default: '20',
    text: 'Failed authentications of one client address within the window that block it.',
  },
  { name: 'TRAWL_AUTH_WINDOW', kind: kind.seconds, default: '600', text: 'Length of that window in seconds.' },
  {
    name: 'TRAWL_AUTH_BLOCK',
    kind: kind.seconds,
    default: '900',
    text: 'Seconds of the first block; each further one is twice as long, up to a day.',
  },
  { name: 'TRAWL_MAX_FILE_BYTES', kind: kind.count, default: '10737418240', text: 'Largest file of a job, in bytes.' },
  { name: 'TRAWL_JOB_SECONDS', kind: kind.seconds, default: '7200', text: 'Longest run of one attempt.' },
  { name: 'TRAWL_INSPECT_SECONDS', kind: kind.seconds, default: '50', text: 'Longest wait for synchronous metadata.' },
  { name: 'TRAWL_ATTEMPTS', kind: kind.count, default: '3', text: 'Tries of a job whose failure may pass.' },
  { name: 'TRAWL_QUEUE_HOURS', kind: kind.duration, default: '24', text: 'Longest wait in the queue, in hours.' },
  { name: 'TRAWL_FILE_HOURS', kind: kind.duration, default: '24', text: 'Hours that a finished file is kept.' },
  { name: 'TRAWL_JOB_DAYS', kind: kind.duration, default: '30', text: 'Days that the record of an ended job is kept.' },
  {
    name: 'TRAWL_LOG_DAYS',
    kind: kind.duration,
    default: '90',
    text: 'Days that the request log is kept: today and yesterday in Redis, earlier days in the object store.',
  },
  {
    name: 'TRAWL_LOG_LINES',
    kind: kind.count,
    default: '10000',
    text: 'About how many free lines of the request log are kept per key in Redis, until their day moves to the object store.',
  },
  {
    name: 'TRAWL_WEBHOOK_SECONDS',
    kind: kind.seconds,
    default: '10',
    text: "Longest wait for the answer of a webhook's receiver.",
  },
  {
    name: 'TRAWL_WEBHOOK_GAP_SECONDS',
    kind: kind.seconds,
    default: '5',
    text: 'Seconds between two attempts to deliver a webhook.',
  },
  { name: 'TRAWL_STRIPE_KEY', kind: kind.text, default: null, secret: true, text: 'Key for payments with Stripe.' },
  {
    name: 'TRAWL_STRIPE_URL',
    kind: kind.linkStart,
    default: null,
    absent: "Stripe's own",
    text: 'A stand-in for Stripe.',
  },
  { name: 'TRAWL_SMTP_URL', kind: kind.mailUrl, default: null, secret: true, text: 'The server that takes mail.' },
  { name: 'TRAWL_MAIL_FROM', kind: kind.mailAddress, default: null, text: 'Sender of mail.' },
  {
    name: 'TRAWL_OIDC_ISSUER',
    kind: kind.webUrl,
    default: null,
    text: 'OpenID Connect for the dashboard: its issuer.',
  },
  { name: 'TRAWL_OIDC_CLIENT_ID', kind: kind.text, default: null, text: 'What the issuer knows the dashboard as.' },
  {
    name: 'TRAWL_OIDC_CLIENT_SECRET',
    kind: kind.text,
    default: null,
    secret: true,
    text: 'What proves it to the issuer.',
  },
  {
    name: 'TRAWL_GATEWAY_ADDRESS',
    kind: kind.address,
    default: null,
    text: "Where a worker finds the workers' gateway; `trawl up` sets it itself for processes.",
  },
  {
    name: 'TRAWL_EGRESS_ADDRESS',
    kind: kind.address,
    default: null,
    text: 'Where worker and inspector find the proxy of `egress`; `trawl up` sets it itself for processes.',
  },
  {
    name: 'TRAWL_INSPECTOR_ADDRESS',
    kind: kind.address,
    default: null,
    text: 'Where the inspector is found; it listens on that port of TRAWL_HOST. `trawl up` sets it itself.',
  },
  {
    name: 'TRAWL_TERMINATION_FILE',
    kind: kind.text,
    default: null,
    text: 'File that a worker of a cluster writes its end to; `trawl up` sets it itself to nothing.',
  },
  ...kubeSettings,
  {
    name: 'TRAWL_CLOCK_FILE',
    kind: kind.text,
    default: null,
    text: 'For rehearsals: a file that holds seconds to add to the clock, read again every 100 ms.',
  },
  {
    name: 'TRAWL_LOG_LEVEL',
    kind: kind.oneOf(...levels),
    default: 'info',
    text: 'Least weight of what is logged, one JSON object a line.',
  },
] as const satisfies readonly Setting[];
