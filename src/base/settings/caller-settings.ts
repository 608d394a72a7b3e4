import * as kind from './kinds.ts';

/** Read by the commands of callers alone; every role knows these settings and ignores them. */
export const callerSettings = {
  TRAWL_API_URL: {
    kind: kind.linkStart,
    absent: 'that of `trawl login`',
    text: 'URL of the service that `trawl get` and `trawl login` call; no role reads it.',
  },
  TRAWL_API_KEY: {
    kind: kind.headerText,
    absent: 'that of `trawl login`',
    secret: true,
    text: 'API key that `trawl get` sends to TRAWL_API_URL; no role reads it.',
  },
} as const satisfies kind.SettingTable;
