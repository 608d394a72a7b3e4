import * as kind from './kinds.ts';
import type { Setting } from './setting.ts';

export const recordSettings = [
  {
    name: 'TRAWL_REDIS_URL',
    kind: kind.redisUrl,
    default: null,
    absent: 'a redis-server of its own in `trawl up`, else required',
    secret: true,
    text: 'Redis that keeps the record: accounts, jobs, money, queue.',
  },
  {
    name: 'TRAWL_DURABILITY',
    kind: kind.oneOf('strict', 'relaxed'),
    default: 'strict',
    text: '`strict` refuses to start unless Redis writes every change to disk before it answers; `relaxed` warns and starts.',
  },
  {
    name: 'TRAWL_JOB_DAYS',
    kind: kind.duration,
    default: '30',
    text: 'Days after which an ended job is removed from the record: its id is then unknown.',
  },
  {
    name: 'TRAWL_LOG_DAYS',
    kind: kind.duration,
    default: '90',
    text: 'Days after which a line of the request log is removed. Today and yesterday are in Redis, earlier days in the object store.',
  },
  {
    name: 'TRAWL_LOG_LINES',
    kind: kind.count,
    default: '10000',
    text: 'Lines of calls that cost nothing, per key, that Redis keeps until their day moves to the object store (about); the oldest go first.',
  },
] as const satisfies readonly Setting[];
