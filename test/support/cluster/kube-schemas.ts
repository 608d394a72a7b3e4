import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Json } from '../json.ts';
import { tool } from '../tools.ts';

const definitionsFile = '_definitions.json';
const textOrNumber = (number: 'number' | 'integer') => ({ oneOf: [{ type: 'string' }, { type: number }] });
/** Types that the OpenAPI of an API server calls strings although numbers are allowed, or that hold anything. */
const special: readonly (readonly [RegExp, object])[] = [
  [/runtime\.RawExtension$|meta\.v1\.FieldsV1$/, {}],
  [/resource\.Quantity$/, textOrNumber('number')],
  [/intstr\.IntOrString$/, textOrNumber('integer')],
];

/**
 * Writes a JSON schema for each kind of the OpenAPI document of an API server, as `kubeconform -schema-location` finds them by
 * `{{.ResourceKind}}{{.KindSuffix}}.json`. They refuse unknown fields.
 */
export function writeKubeSchemas(folder: string, openapi: Json): number {
  mkdirSync(folder, { recursive: true });
  const all = Object.entries<Json>(openapi.definitions);
  const definitions = Object.fromEntries(
    all.map(([name, definition]) => [
      name,
      special.find(([type]) => type.test(name))?.[1] ?? refuseUnknown(definition),
    ]),
  );
  const text = JSON.stringify({ definitions }).replaceAll('#/definitions/', `${definitionsFile}#/definitions/`);
  writeFileSync(join(folder, definitionsFile), text);
  let count = 0;
  for (const [name, definition] of all) {
    if (!definition.properties?.metadata) continue;
    for (const { group, version, kind } of definition['x-kubernetes-group-version-kind'] ?? []) {
      const file = [kind.toLowerCase(), group.split('.')[0], version].filter(Boolean).join('-');
      writeFileSync(join(folder, `${file}.json`), JSON.stringify({ $ref: `${definitionsFile}#/definitions/${name}` }));
      count++;
    }
  }
  return count;
}

/** The files that define the kinds of others: HTTPRoute, PodMonitor, PrometheusRule and Certificate. */
export function foreignDefinitions(): string[] {
  return globSync(join(dirname(tool('oldest-kubernetes.json')), '*.yaml')).sort();
}

/** The OpenAPI document of the oldest Kubernetes that the chart supports. */
export function oldestOpenapi(): Json {
  return JSON.parse(readFileSync(tool('oldest-kubernetes.json'), 'utf8'));
}

function refuseUnknown(node: Json): Json {
  if (Array.isArray(node)) return node.map(refuseUnknown);
  if (typeof node !== 'object' || node === null) return node;
  const kept = Object.entries<Json>(node).filter(([key]) => !key.startsWith('x-kubernetes') && key !== 'format');
  const made = Object.fromEntries(
    kept.map(([key, value]) => {
      if (key === 'properties') return [key, mapValues(value)];
      return [key, ['enum', 'required', 'default'].includes(key) ? value : refuseUnknown(value)];
    }),
  );
  return made.properties && made.additionalProperties === undefined ? { ...made, additionalProperties: false } : made;
}

function mapValues(properties: Json): Json {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, refuseUnknown(schema)]));
}
