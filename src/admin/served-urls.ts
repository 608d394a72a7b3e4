import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../base/config.ts';
import { parseJson } from '../base/parse-json.ts';

export type ServedUrls = Pick<Config, 'publicUrl' | 'dashboardUrl'>;

/** File of the data folder that names where the running `trawl up` is reached; its environment may name other ports than that of a command. */
export const servedUrlsFile = 'urls.json';

/** Returns the URLs that links begin with: those of the environment where it names any part of them, else those of `trawl up`. */
export async function findServedUrls(
  { data, publicUrl, dashboardUrl }: ServedUrls & Pick<Config, 'data'>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ServedUrls> {
  const served = await readUrls(join(data, servedUrlsFile));
  const isNamed = (...names: string[]) => names.some((name) => Boolean(env[name]));
  // Port 0 names none: it is any free one.
  const choose = (own: string, known: string | undefined, ...names: string[]) =>
    known !== undefined && (!isNamed(...names) || new URL(own).port === '0') ? known : own;
  return {
    publicUrl: choose(publicUrl, served.publicUrl, 'TRAWL_PUBLIC_URL', 'TRAWL_HOST', 'TRAWL_PORT'),
    dashboardUrl: choose(
      dashboardUrl,
      served.dashboardUrl,
      'TRAWL_DASHBOARD_URL',
      'TRAWL_HOST',
      'TRAWL_DASHBOARD_PORT',
    ),
  };
}

async function readUrls(file: string): Promise<Partial<ServedUrls>> {
  // Without the file, no `trawl up` serves from this folder, as in a cluster.
  const text = await readFile(file, 'utf8').catch(() => '');
  return parseJson(text) ?? {};
}
