import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadAllYaml } from '@kubernetes/client-node/dist/yaml.js';
import type { Json } from './json.ts';
import { tool } from './tools.ts';
import { root } from './tree.ts';

export const chart = join(root, 'charts', 'trawl');

/** The scenarios that every check of the chart goes through. */
export const scenarios = [
  'ci/least-values.yaml',
  'ci/everything-values.yaml',
  'ci/open-values.yaml',
  'values-ha.yaml',
  'values-try.yaml',
] as const;

export interface Rendering {
  readonly scenario?: (typeof scenarios)[number] | null;
  readonly release?: string;
  readonly namespace?: string;
  /** Values as `--set-json` takes them. */
  readonly values?: Readonly<Record<string, unknown>>;
  readonly more?: readonly string[];
}

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs helm with folders of its own, so that nothing of this user is read or left. */
export function helm(...words: readonly string[]): Ran {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  try {
    const env = {
      PATH: process.env.PATH,
      // A run needs 95 MB without collecting garbage, and a quarter less CPU.
      GOGC: 'off',
      HOME: folder,
      HELM_CACHE_HOME: folder,
      HELM_CONFIG_HOME: folder,
      HELM_DATA_HOME: folder,
    };
    const { status, stdout, stderr } = spawnSync(tool('helm'), words, { env, encoding: 'utf8', maxBuffer: 2 ** 26 });
    return { code: status, out: stdout, err: stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns what helm says when it renders the chart. */
export function tryRender(rendering: Rendering): Ran {
  const {
    scenario = 'ci/least-values.yaml',
    release = 'trawl',
    namespace = 'media',
    values = {},
    more = [],
  } = rendering;
  const sets = Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);
  const file = scenario === null ? [] : ['--values', join(chart, scenario)];
  const version = ['--kube-version', '1.36.0'];
  return helm('template', release, chart, '--namespace', namespace, ...version, ...file, ...sets, ...more);
}

/** Returns the objects that the chart makes of these values. */
export function render(rendering: Rendering = {}): Json[] {
  const { code, out, err } = tryRender(rendering);
  if (code !== 0) throw new Error(err);
  // The library renames this field as its classes have it.
  return JSON.parse(JSON.stringify(loadAllYaml(out).filter(Boolean)).replaceAll('"_from":', '"from":'));
}

/** Returns the one object of this kind and name. */
export function find(objects: readonly Json[], kind: string, name: string): Json {
  const found = objects.filter((object) => object.kind === kind && object.metadata.name === name);
  if (found.length !== 1) throw new Error(`there are ${found.length} of ${kind} ${name}`);
  return found[0];
}

/** Returns the pods of all objects that have one, with the name of the object. */
export function podsOf(
  objects: readonly Json[],
): { readonly name: string; readonly pod: Json; readonly labels: Json }[] {
  return objects.flatMap((object) => {
    const template = object.kind === 'Pod' ? object : (object.spec?.jobTemplate?.spec ?? object.spec)?.template;
    if (!template?.spec?.containers) return [];
    return [{ name: object.metadata.name, pod: template.spec, labels: template.metadata.labels }];
  });
}

/** Returns the paths of all values, such as `workers.most`. */
export function leavesOf(value: Json, path = ''): string[] {
  const isGroup = typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
  if (!isGroup || path.endsWith('resources')) return [path];
  return Object.entries(value).flatMap(([name, below]) => leavesOf(below, path ? `${path}.${name}` : name));
}

export const runTool = promisify(execFile);
