import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../free-port.ts';
import type { Json } from '../json.ts';
import { aFolder } from '../redis.ts';
import { until } from '../until.ts';

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: [number, string];
}

/** A real Prometheus that reads parts of trawl every second, as those of one namespace. */
export interface Prometheus {
  readonly url: string;
  /** Reads these addresses from now on. */
  setTargets(addresses: readonly string[]): void;
  /** Judges by these rules from now on. */
  setRules(rules: string): void;
  /** The series of a query; throws what Prometheus says against it. */
  ask(query: string): Promise<readonly Series[]>;
  /** Names of the alerts that fire. */
  firing(): Promise<readonly string[]>;
  /** Descriptions of those alerts of a name that fire. */
  wordsOf(alert: string): Promise<string>;
  /** Names of the alerts that fire, or will when their condition lasts. */
  active(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

export const watchedNamespace = 'films';

/** Starts Prometheus with these rules. */
export async function startPrometheus(rules = 'groups: []'): Promise<Prometheus> {
  const { folder, remove } = aFolder();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const targets = join(folder, 'targets.json');
  const setTargets = (addresses: readonly string[]) => {
    writeFileSync(`${targets}.new`, JSON.stringify([{ targets: addresses, labels: { namespace: watchedNamespace } }]));
    renameSync(`${targets}.new`, targets);
  };
  setTargets([]);
  const ruleFile = join(folder, 'rules.yaml');
  writeFileSync(ruleFile, rules);
  const configuration = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: [{ job_name: 'trawl', file_sd_configs: [{ files: [targets], refresh_interval: '1s' }] }],
  };
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(configuration));
  const words = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${join(folder, 'data')}`];
  const child: ChildProcess = spawn('prometheus', [...words, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: 'ignore',
  });
  const isReady = () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady, 20, 'Prometheus is ready');
  const read = (path: string) => readApi(url, path);
  const alertsIn = async (states: readonly string[]): Promise<Json[]> => {
    const { alerts } = await read('/api/v1/alerts');
    return alerts.filter(({ state }: Json) => states.includes(state));
  };
  const namesOf = async (states: readonly string[]) => {
    const names: string[] = (await alertsIn(states)).map(({ labels }) => labels.alertname);
    return [...new Set(names)].sort();
  };
  return {
    url,
    setTargets,
    setRules: (text) => {
      writeFileSync(ruleFile, text);
      child.kill('SIGHUP');
    },
    ask: async (query) => (await read(`/api/v1/query?query=${encodeURIComponent(query)}`)).result,
    firing: () => namesOf(['firing']),
    wordsOf: async (alert) => {
      const own = (await alertsIn(['firing'])).filter(({ labels }) => labels.alertname === alert);
      return own.map(({ annotations }) => annotations.description ?? annotations.summary).join('; ');
    },
    active: () => namesOf(['pending', 'firing']),
    stop: async () => {
      if (child.kill()) await once(child, 'exit');
      remove();
    },
  };
}

async function readApi(url: string, path: string): Promise<Json> {
  const { status, data, error } = (await (await fetch(url + path)).json()) as Json;
  if (status !== 'success') throw new Error(`${path}: ${error}`);
  return data;
}
