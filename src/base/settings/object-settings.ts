import * as kind from './kinds.ts';
import type { Setting } from './setting.ts';

export const objectSettings = [
  {
    name: 'TRAWL_OBJECTS',
    kind: kind.oneOf('folder', 's3'),
    default: 'folder',
    text: 'Where finished files and archived days of the record are kept: in the data folder or in S3, whose SDK finds the credentials.',
  },
  {
    name: 'TRAWL_S3_BUCKET',
    kind: kind.bucket,
    default: null,
    text: 'Bucket for finished files and archived days alone; required for `s3`. docs/s3.md says how it must be set up.',
  },
  {
    name: 'TRAWL_S3_ENDPOINT',
    kind: kind.serverUrl,
    default: null,
    absent: 'that of AWS',
    text: 'S3 service as controller and workers reach it; workers go through `egress` when its address is public.',
  },
  {
    name: 'TRAWL_S3_PUBLIC_ENDPOINT',
    kind: kind.serverUrl,
    default: null,
    absent: 'the same endpoint',
    text: 'S3 service as callers reach it: result links lead there.',
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
    text: '`true` puts the bucket into the path of URLs, `false` into the host name.',
  },
  {
    name: 'TRAWL_FILE_HOURS',
    kind: kind.duration,
    default: '24',
    text: 'Hours after which a finished file is deleted; links to it then no longer work.',
  },
] as const satisfies readonly Setting[];
