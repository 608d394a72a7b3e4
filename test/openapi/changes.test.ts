import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Json } from '../support/json.ts';
import { aFolder } from '../support/redis.ts';
import { read, root } from '../support/tree.ts';

/** Changes of the document, and whether a client of the document before would notice them. */
const changes: readonly (readonly [string, 'kept' | 'broken', (document: Json) => void])[] = [
  ['no change', 'kept', () => {}],
  ['a new parameter', 'kept', ({ paths }) => parametersOf(paths).push(aParameter(false))],
  ['a new field of an answer', 'kept', (told) => eachJob(told, ({ properties }) => (properties.more = {}))],
  ['a new error code', 'kept', (told) => eachJob(told, ({ properties }) => codesOf(properties).push('more'))],
  ['a new path', 'kept', ({ paths }) => (paths['/v2/usage'] = paths['/v1/usage'])],
  ['a parameter that is required', 'broken', ({ paths }) => parametersOf(paths).push(aParameter(true))],
  ['a path that is gone', 'broken', ({ paths }) => delete paths['/jobs/{id}']],
  ['a field that is gone', 'broken', (told) => eachJob(told, ({ properties }) => delete properties.stage)],
  ['a field of another type', 'broken', (told) => eachJob(told, ({ properties }) => (properties.id.type = 'number'))],
  ['a new status of a job', 'broken', (told) => eachJob(told, ({ properties }) => properties.status.enum.push('New'))],
];

describe('.ci/api-changes', () => {
  it('finds nothing in this tree that would break callers of docs/openapi-released.json, and says nothing', () => {
    const { status, stdout, stderr } = spawnSync(join(root, '.ci', 'api-changes'), { encoding: 'utf8' });
    expect({ status, stdout, stderr }).to.deep.equal({ status: 0, stdout: '', stderr: '' });
  });

  for (const [title, wanted, change] of changes) {
    it(`${wanted === 'broken' ? 'refuses, and tells,' : 'accepts without a word'} ${title}`, () => {
      const { folder, remove } = aFolder();
      const [before, after] = [join(folder, 'before.json'), join(folder, 'after.json')];
      const document = read('docs/openapi.json');
      writeFileSync(before, document);
      const changed = JSON.parse(document);
      change(changed);
      writeFileSync(after, JSON.stringify(changed));
      const { status, stdout, stderr } = spawnSync(join(root, '.ci', 'api-changes'), [before, after], {
        encoding: 'utf8',
      });
      remove();
      expect({ status, isTold: stdout !== '', stderr }).to.deep.equal(
        wanted === 'broken' ? { status: 1, isTold: true, stderr: '' } : { status: 0, isTold: false, stderr: '' },
      );
    });
  }
});

function eachJob({ components }: Json, change: (schema: Json) => void): void {
  for (const name of ['Job', 'JobPart']) change(components.schemas[name]);
}

function codesOf({ error_code }: Json): string[] {
  return error_code.anyOf[0]['x-extensible-enum'];
}

function parametersOf(paths: Json): object[] {
  return paths['/v1/usage'].get.parameters;
}

function aParameter(required: boolean): object {
  return { name: 'more', in: 'query', required, schema: { type: 'string' } };
}
