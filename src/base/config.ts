import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { messageOf } from './errors.ts';
import { tableOf } from './markdown-table.ts';
import { type ServerAddress, showAddress, usesTls } from './server-address.ts';
import { callerSettings } from './settings/caller-settings.ts';
import type { Setting, SettingKind } from './settings/kinds.ts';
import { type KnownSettings, type SettingName, settings } from './settings/settings.ts';

/** TRAWL_S3_PUBLIC_ENDPOINT is `s3PublicEndpoint`. */
type FieldName<Name extends string> = Name extends `TRAWL_${infer Rest}` ? Camel<Rest> : never;
type Camel<Words extends string> = Words extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<Camel<Rest>>}`
  : Lowercase<Words>;
type SettingValue<R> = R extends { kind: SettingKind<infer T> }
  ? R extends { default: string }
    ? T
    : T | null
  : never;
type SettingValues = { readonly [N in SettingName as FieldName<N>]: SettingValue<KnownSettings[N]> };
type LinkStarts = { readonly publicUrl: string; readonly dashboardUrl: string };

export type Config = Omit<SettingValues, keyof LinkStarts | FieldName<keyof typeof callerSettings>> & LinkStarts;

/** Config in which these settings have a value. */
export type ConfigWith<N extends SettingName> = Config & {
  readonly [F in FieldName<N> & keyof Config]: NonNullable<Config[F]>;
};

export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

type SettingEnvironment = Readonly<Record<string, string | undefined>>;
type ReadFile = (path: string) => string;
const readFromDisk: ReadFile = (path) => readFileSync(path, 'utf8');

/** Contradiction between settings. A setting that is invalid by itself is `undefined` here and breaks no rule. */
export interface ConfigRule {
  readonly broken: (config: Partial<Config>) => boolean;
  readonly sentence: string;
}

export interface RoleNeeds<N extends SettingName> {
  readonly required?: readonly N[];
  readonly rules?: readonly ConfigRule[];
}

const podAddresses = [
  ['gatewayAddress', 'TRAWL_GATEWAY_ADDRESS'],
  ['egressAddress', 'TRAWL_EGRESS_ADDRESS'],
] as const;

const rules: readonly ConfigRule[] = [
  {
    broken: ({ objects, s3Bucket }) => objects === 's3' && s3Bucket === null,
    sentence: 'TRAWL_OBJECTS=s3 needs TRAWL_S3_BUCKET.',
  },
  {
    broken: ({ objects, s3Bucket }) => objects === 'folder' && Boolean(s3Bucket),
    sentence: 'TRAWL_S3_BUCKET needs TRAWL_OBJECTS=s3: files would be kept in a folder.',
  },
  {
    broken: ({ runner, objects }) => runner === 'kubernetes' && objects === 'folder',
    sentence: 'TRAWL_RUNNER=kubernetes needs TRAWL_OBJECTS=s3: Jobs of a cluster share no folder.',
  },
  ...([['kubeNamespace', 'TRAWL_KUBE_NAMESPACE'], ['workerImage', 'TRAWL_WORKER_IMAGE'], ...podAddresses] as const).map(
    ([field, name]) => ({
      broken: (config: Partial<Config>) => config.runner === 'kubernetes' && config[field] === null,
      sentence: `TRAWL_RUNNER=kubernetes needs ${name}.`,
    }),
  ),
  ...podAddresses.map(([field, name]) => ({
    broken: ({ runner, [field]: address }: Partial<Config>) =>
      runner === 'kubernetes' && Boolean(address && 'path' in address),
    sentence: `${name} must be http://host:port with TRAWL_RUNNER=kubernetes: pods reach no socket of this machine.`,
  })),
  {
    broken: ({ runner, gatewayAddress, tlsCertFile }) =>
      runner === 'kubernetes' && Boolean(gatewayAddress && usesTls(gatewayAddress) !== Boolean(tlsCertFile)),
    sentence: 'TRAWL_GATEWAY_ADDRESS must begin with https:// if TRAWL_TLS_CERT_FILE is set, and with http:// if not.',
  },
  {
    broken: ({ tlsCertFile, tlsKeyFile }) => (tlsCertFile === null) !== (tlsKeyFile === null),
    sentence: 'TRAWL_TLS_CERT_FILE and TRAWL_TLS_KEY_FILE need each other.',
  },
  {
    // Of fewer workers none is kept.
    broken: ({ workers = 1, reservedWorkers = 0 }) => workers >= 3 && reservedWorkers >= workers,
    sentence: 'TRAWL_RESERVED_WORKERS must be less than TRAWL_WORKERS: no account could have a second job otherwise.',
  },
  {
    broken: ({ clockFile, host }) => Boolean(clockFile) && host !== undefined && !isLoopback(host),
    sentence: 'TRAWL_CLOCK_FILE is for rehearsals: TRAWL_HOST must be a loopback address with it.',
  },
  {
    broken: ({ clockFile, runner }) => Boolean(clockFile) && runner === 'kubernetes',
    sentence: 'TRAWL_CLOCK_FILE is for rehearsals: TRAWL_RUNNER must be process with it.',
  },
  {
    broken: ({ smtpUrl, mailFrom }) => Boolean(smtpUrl) && mailFrom === null,
    sentence: 'TRAWL_SMTP_URL needs TRAWL_MAIL_FROM.',
  },
  {
    broken: ({ dashboardPort, dashboardUrl }) => dashboardPort === null && dashboardUrl === null,
    sentence: 'TRAWL_DASHBOARD_PORT=none needs TRAWL_DASHBOARD_URL: links to the dashboard begin with it.',
  },
  {
    broken: ({ oidcIssuer, oidcClientId }) => Boolean(oidcIssuer) && oidcClientId === null,
    sentence: 'TRAWL_OIDC_ISSUER needs TRAWL_OIDC_CLIENT_ID.',
  },
  {
    broken: ({ oidcIssuer }) => Boolean(oidcIssuer?.startsWith('http:')) && !isLoopback(new URL(oidcIssuer!).hostname),
    sentence: 'TRAWL_OIDC_ISSUER must be an https:// URL: whoever is on the way could sign in as anybody otherwise.',
  },
];

/** Reads every setting but those of callers, or throws a ConfigError that tells all that is wrong at once. */
export function readConfig<const N extends SettingName = never>(
  env: SettingEnvironment,
  { required = [], rules: own = [] }: RoleNeeds<N> = {},
  readFile = readFromDisk,
): ConfigWith<N> {
  const ofRoles = settings.filter(({ name }) => !(name in callerSettings));
  const { values, problems: wrong } = readValues(ofRoles, required, env, readFile);
  const problems = [...unknownNames(env).map((name) => `${name} is not a setting of trawl.`), ...wrong];
  const config = values as SettingValues;
  const broken = [...rules, ...own].filter((rule) => rule.broken(config as Partial<Config>));
  problems.push(...broken.map((rule) => rule.sentence));
  if (problems.length) throw new ConfigError(problems);
  const trusting = (address: ServerAddress | null) =>
    address && usesTls(address) ? { ...address, tls: { caFile: config.tlsCaFile } } : address;
  return Object.freeze({
    ...config,
    gatewayAddress: trusting(config.gatewayAddress),
    egressAddress: trusting(config.egressAddress),
    inspectorAddress: trusting(config.inspectorAddress),
    publicUrl: config.publicUrl ?? showAddress({ host: config.host, port: config.port }),
    dashboardUrl: config.dashboardUrl ?? showAddress({ host: config.host, port: config.dashboardPort ?? 0 }),
  }) as Config as ConfigWith<N>;
}

/** Reads these settings alone, for commands that ignore all others; throws a ConfigError that tells all that is wrong at once. */
export function readSettings<const N extends SettingName>(
  env: SettingEnvironment,
  names: readonly N[],
  readFile = readFromDisk,
): Pick<SettingValues, FieldName<N>> {
  const wanted = settings.filter(({ name }) => (names as readonly SettingName[]).includes(name));
  const { values, problems } = readValues(wanted, [], env, readFile);
  if (problems.length) throw new ConfigError(problems);
  return values as Pick<SettingValues, FieldName<N>>;
}

export function configTable(): string {
  return tableOf(['Name', 'Default', 'Allowed', 'Meaning'], settings.map(describe));
}

function readValues(
  wanted: readonly Setting[],
  required: readonly string[],
  env: SettingEnvironment,
  readFile: ReadFile,
): { values: Record<string, unknown>; problems: string[] } {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const setting of wanted) {
    try {
      values[fieldOf(setting.name)] = readSetting(setting, required.includes(setting.name), env, readFile);
    } catch (error) {
      problems.push(messageOf(error));
    }
  }
  return { values, problems };
}

function describe(setting: Setting): string[] {
  const shown = setting.absent ?? (setting.default ? `\`${setting.default}\`` : 'empty');
  const again = setting.followed ? ', which is read again every 2 s' : '';
  const secret = setting.secret ? ` **Secret**: may come from \`${setting.name}_FILE\`${again}.` : '';
  return [`\`${setting.name}\``, shown, setting.kind.allowed, setting.text + secret];
}

function unknownNames(env: SettingEnvironment): string[] {
  const known = new Set(settings.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name])));
  return Object.keys(env)
    .filter((name) => name.startsWith('TRAWL_') && !known.has(name))
    .sort();
}

function readSetting(setting: Setting, required: boolean, env: SettingEnvironment, readFile: ReadFile): unknown {
  const text = readText(setting, env, readFile) || (setting.default ?? null);
  if (text === null) {
    if (required) throw new Error(`${setting.name} is required here.`);
    return null;
  }
  const value = setting.kind.read(text);
  if (value === undefined) throw new Error(`${setting.name} must be ${setting.kind.allowed}.`);
  return value;
}

/** The text of a setting; an empty one counts as not set. */
function readText({ name, secret }: Setting, env: SettingEnvironment, readFile: ReadFile): string | null {
  const path = secret ? env[`${name}_FILE`] : undefined;
  if (!path) return env[name] || null;
  if (env[name]) throw new Error(`${name} and ${name}_FILE are both set: one of them must go.`);
  const text = readSecretFile(`${name}_FILE`, path, readFile).trim();
  if (!text) throw new Error(`${name}_FILE names an empty file.`);
  return text;
}

function readSecretFile(name: string, path: string, readFile: ReadFile): string {
  try {
    return readFile(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    throw new Error(`${name} names a file that cannot be read${code}.`);
  }
}

/** Returns the field of a setting: `s3PublicEndpoint` for TRAWL_S3_PUBLIC_ENDPOINT. */
export function fieldOf(name: string): string {
  return name
    .slice('TRAWL_'.length)
    .toLowerCase()
    .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** A host, also one of a URL, counts as loopback in its plain spellings alone: refusing any other one is the safe side. */
export function isLoopback(host: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(host) || (isIPv4(host) && host.startsWith('127.'));
}
