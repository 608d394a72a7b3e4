import * as kind from './kinds.ts';

export const storageSettings = {
  TRAWL_REDIS_URL: {
    kind: kind.redisUrl,
    absent: 'a redis-server of its own in `trawl up`, else required',
    secret: true,
    followed: true,
    text: 'Redis that keeps the record: accounts, jobs, money, queue. When its file changes, user and password take effect at once, everything else at the next start.',
  },
  TRAWL_REDIS_MEMORY: {
    kind: kind.memoryBytes,
    absent: "a quarter of the machine's in `trawl up`; for a Redis of yours without a limit, 75 % of its machine's",
    text: 'Memory of Redis, in bytes: `maxmemory` of the redis-server of `trawl up`, or the limit assumed for a Redis that has none. Admissions stop at 85 % of it (docs/operate.md).',
  },
  TRAWL_DURABILITY: {
    kind: kind.oneOf('strict', 'relaxed'),
    default: 'strict',
    text: '`strict` refuses to start, and admits nothing, unless Redis writes every change to disk before it answers; `relaxed` warns.',
  },
  TRAWL_JOB_DAYS: {
    kind: kind.duration,
    default: '30',
    text: 'Days after which an ended job is removed from the record: its id is then unknown. It stays as long as its file does (`TRAWL_FILE_HOURS`), and while its batch runs.',
  },
  TRAWL_LOG_DAYS: {
    kind: kind.duration,
    default: '90',
    text: 'Days after which a line of the request log is removed. Today and yesterday are in Redis, earlier days in the object store.',
  },
  TRAWL_LOG_LINES: {
    kind: kind.count,
    default: '10000',
    text: 'Lines of calls that cost nothing, per key, that Redis keeps until their day moves to the object store (about); the oldest go first.',
  },
  TRAWL_OBJECTS: {
    kind: kind.oneOf('folder', 's3'),
    default: 'folder',
    text: 'Where finished files and archived days of the record are kept: in the data folder or in S3, whose SDK finds the credentials (docs/s3.md).',
  },
  TRAWL_S3_BUCKET: {
    kind: kind.bucket,
    text: 'Bucket for finished files and archived days alone; required for `s3`. docs/s3.md says how it must be set up.',
  },
  TRAWL_S3_ENDPOINT: {
    kind: kind.serverUrl,
    absent: 'that of AWS',
    text: 'S3 service as controller and workers reach it; workers go through `egress` when its address is public.',
  },
  TRAWL_S3_PUBLIC_ENDPOINT: {
    kind: kind.serverUrl,
    absent: 'the same endpoint',
    text: 'S3 service as callers reach it: result links lead there.',
  },
  TRAWL_S3_REGION: {
    kind: kind.region,
    absent: 'found by the SDK, or `us-east-1` with an endpoint',
    text: 'Region of the bucket.',
  },
  TRAWL_S3_PATH_STYLE: {
    kind: kind.flag,
    default: 'false',
    text: '`true` puts the bucket into the path of URLs, `false` into the host name.',
  },
  TRAWL_FILE_HOURS: {
    kind: kind.duration,
    default: '24',
    text: 'Hours after which a finished file is deleted; links to it then no longer work.',
  },
  TRAWL_BACKUPS_SCHEDULED: {
    kind: kind.flag,
    default: 'false',
    text: '`true` where backups of the record are taken on a schedule: their age counts from the first reading of the metrics, so TrawlBackupOld fires for a schedule that never begins one.',
  },
} as const satisfies kind.SettingTable;
