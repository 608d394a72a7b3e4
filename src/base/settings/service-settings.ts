import { levels, logFormats } from '../log.ts';
import * as kind from './kinds.ts';

export const serviceSettings = {
  TRAWL_DATA: {
    kind: kind.text,
    default: './data',
    text: 'Data folder of `trawl up`: secret, Redis, finished files. Worker and inspector put their temporary files below it.',
  },
  TRAWL_HOST: {
    kind: kind.host,
    default: '127.0.0.1',
    text: 'Address that every port below is opened on; `0.0.0.0` or `::` for all.',
  },
  TRAWL_PORT: { kind: kind.port, default: '8080', text: 'Port of the public API.' },
  TRAWL_GATEWAY_PORT: {
    kind: kind.port,
    default: '8082',
    text: 'Port on which the controller answers workers; unused by `trawl up` with worker processes, which use a socket.',
  },
  TRAWL_PROBE_PORT: {
    kind: kind.port,
    default: '9090',
    text: 'Port of `/healthz`, `/readyz` and `/metrics`, in every role.',
  },
  TRAWL_PUBLIC_URL: {
    kind: kind.linkStart,
    absent: 'from host and port in `trawl up`, else required',
    text: 'URL at which callers reach the API; links to results begin with it.',
  },
  TRAWL_SECRET: {
    kind: kind.secretKey,
    absent: 'made once in the data folder by `trawl up`, else required',
    secret: true,
    followed: true,
    text: "Key that signs result links and workers' tokens and encrypts webhook authorizations.",
  },
  TRAWL_SECRET_OLD: {
    kind: kind.secretKeys,
    secret: true,
    followed: true,
    text: 'Previous value of TRAWL_SECRET, the next one, or both: links, tokens and authorizations made with them are valid, too. [Its procedure](operate.md#procedure-change-trawl_secret) says when to remove it.',
  },
  TRAWL_TLS_CERT_FILE: {
    kind: kind.text,
    text: 'PEM file of a certificate with its chain, with which gateway, inspector and `egress` speak TLS on their ports; read again every 10 s.',
  },
  TRAWL_TLS_KEY_FILE: { kind: kind.text, text: 'PEM file of the key of that certificate.' },
  TRAWL_TLS_CA_FILE: {
    kind: kind.text,
    absent: 'public authorities',
    text: 'PEM file of the authorities whose certificates are trusted at the https:// addresses of gateway, inspector and `egress`; read for each connection.',
  },
  TRAWL_CLOCK_FILE: {
    kind: kind.text,
    text: 'For rehearsals only: a file that holds seconds to add to the clock, read again every 100 ms.',
  },
  TRAWL_LOG_LEVEL: { kind: kind.oneOf(...levels), default: 'info', text: 'Lowest level that is logged.' },
  TRAWL_LOG_FORMAT: {
    kind: kind.oneOf(...logFormats),
    default: 'auto',
    text: '`auto` logs short lines for people on a terminal, without colours where `NO_COLOR` is set, and one JSON object per line elsewhere; `text` and `json` decide it.',
  },
  TRAWL_TRACES_URL: {
    kind: kind.webUrl,
    text: 'OTLP/HTTP address of an OpenTelemetry collector, such as `http://collector:4318/v1/traces`: API, dashboard and controller send it a trace of each job. Without it nothing is traced, and the SDK of OpenTelemetry is not loaded ([traces](operate.md#traces)).',
  },
  TRAWL_ASYNC_STATUS: {
    kind: kind.oneOf(202, 200),
    default: '202',
    text: 'HTTP status of the answer that accepts an asynchronous call.',
  },
  TRAWL_KEY_QUOTA_STATUS: {
    kind: kind.oneOf(401, 429),
    default: '401',
    text: 'HTTP status of the refusal when the quota of a key is used up.',
  },
  TRAWL_TRUSTED_PROXIES: {
    kind: kind.networks,
    default: '',
    text: 'Proxies whose `X-Forwarded-For` names the caller; from every other peer the header is ignored, and more than 100 connections without a complete request, 1,000 idle ones, or 64 MiB of answers that it does not read, cost it the oldest.',
  },
  TRAWL_AUTH_FAILURES: {
    kind: kind.count,
    default: '20',
    text: 'Failed authentications of one client address (IPv6: its /64) within TRAWL_AUTH_WINDOW that block the address: it gets 403.',
  },
  TRAWL_AUTH_WINDOW: {
    kind: kind.seconds,
    default: '600',
    text: 'Seconds within which failed authentications are counted together.',
  },
  TRAWL_AUTH_BLOCK: {
    kind: kind.seconds,
    default: '900',
    text: 'Seconds that the first block of an address lasts; each further block lasts twice as long, up to a day.',
  },
} as const satisfies kind.SettingTable;
