import * as kind from './kinds.ts';
import type { Setting } from './setting.ts';

export const apiSettings = [
  {
    name: 'TRAWL_ASYNC_STATUS',
    kind: kind.oneOf(202, 200),
    default: '202',
    text: 'HTTP status of the answer that accepts an asynchronous call.',
  },
  {
    name: 'TRAWL_KEY_QUOTA_STATUS',
    kind: kind.oneOf(401, 429),
    default: '401',
    text: 'HTTP status of the refusal when the quota of a key is used up.',
  },
  {
    name: 'TRAWL_TRUSTED_PROXIES',
    kind: kind.networks,
    default: '',
    text: 'Proxies whose `X-Forwarded-For` names the caller; from every other peer the header is ignored.',
  },
  {
    name: 'TRAWL_AUTH_FAILURES',
    kind: kind.count,
    default: '20',
    text: 'Failed authentications of one client address (IPv6: its /64) within TRAWL_AUTH_WINDOW that block the address: it gets 403.',
  },
  {
    name: 'TRAWL_AUTH_WINDOW',
    kind: kind.seconds,
    default: '600',
    text: 'Seconds within which failed authentications are counted together.',
  },
  {
    name: 'TRAWL_AUTH_BLOCK',
    kind: kind.seconds,
    default: '900',
    text: 'Seconds that the first block of an address lasts; each further block lasts twice as long, up to a day.',
  },
] as const satisfies readonly Setting[];
